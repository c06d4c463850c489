"""Kept until the search package imports `language.stems` itself."""

from language.stems import questioned, stems

__all__ = ["questioned", "stems"]
