"""Which files can be learned from, by their names."""

from pathlib import PurePath

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

CONTENT_TYPES = {
    ".txt": "text/plain",
    ".text": "text/plain",
    ".log": "text/plain",
    ".rst": "text/plain",
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".pdf": "application/pdf",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".ndjson": "application/x-ndjson",
    ".docx": DOCX,
}


def content_type_of(path: PurePath) -> str | None:
    """What its name says it is, where that is something to learn from."""
    return CONTENT_TYPES.get(path.suffix.lower())
