"""Kept until the search package imports `language.words` itself."""

from language.words import query_stems, stems

questioned = query_stems

__all__ = ["questioned", "stems"]
