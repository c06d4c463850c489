"""Cards, roles and defaults, shipped as package data."""
