"""The one version number, of both wheels and of the contracts."""

__version__ = "0.1.0"
