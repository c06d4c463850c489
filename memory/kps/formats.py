"""Document formats: content types, checks that the bytes are of the declared one, choice of the extractor."""

import codecs
import importlib
import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import PurePath

from memory.kps.document import (
    CorruptDocument,
    DeclaredTypeDiffers,
    Document,
    DocumentProtected,
    NotText,
    UnknownFormat,
    require_words,
)

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
MAIL = "message/rfc822"

# By file name extension.
CONTENT_TYPES = {
    ".txt": "text/plain",
    ".text": "text/plain",
    ".log": "text/plain",
    ".rst": "text/plain",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".pdf": PDF,
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".ndjson": "application/x-ndjson",
    ".docx": DOCX,
    ".pptx": PPTX,
    ".xlsx": XLSX,
    ".odt": ODT,
    ".eml": MAIL,
}
_HTML = "text_formats:extract_html"
_JSON = "text_formats:extract_json"
_JSON_LINES = "text_formats:extract_json_lines"
_TABLE = "text_formats:extract_table_text"
_TEXT = {
    "text/markdown": "text_formats:extract_markdown",
    "text/x-markdown": "text_formats:extract_markdown",
    "text/html": _HTML,
    "application/xhtml+xml": _HTML,
    "application/json": _JSON,
    "application/jsonl": _JSON_LINES,
    "application/x-ndjson": _JSON_LINES,
    "application/x-jsonlines": _JSON_LINES,
    "text/csv": _TABLE,
    "text/tab-separated-values": _TABLE,
}
_BINARY = {
    PDF: "pdf:extract_pdf",
    DOCX: "office:extract_docx",
    PPTX: "office:extract_pptx",
    XLSX: "office:extract_xlsx",
    ODT: "open_document:extract_odt",
}
# The part that only an archive of this kind has.
_MAIN_PARTS = {"word/document.xml": DOCX, "ppt/presentation.xml": PPTX, "xl/workbook.xml": XLSX}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_SIGNATURES = (
    (_OLE, "application/msword"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"\x1f\x8b", "application/gzip"),
    (b"{\\rtf", "application/rtf"),
)
_CHARSET = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([\w-]+)", re.IGNORECASE)
# As Windows, Unix and DOS wrote Russian, and Windows the languages of Western Europe.
_OLDER_CHARSETS = ["windows-1251", "koi8-r", "cp866", "windows-1252"]
# Of five words or fewer one in five in koi8-r was read wrong, of which nobody would be told.
_GUESSED_FROM_BYTES = 100
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def extract(content: bytes, content_type: str) -> Document:
    """Text of a document with its structure. Raises Rejected; any exception of a parser on a broken document."""
    media_type, charset = _parse_content_type(content_type)
    if media_type in _BINARY:
        _require_binary(content, media_type)
        return require_words(_extractor(_BINARY[media_type])(content))
    if media_type == MAIL:
        return require_words(_extractor("mail:extract_mail")(content))
    read = _extractor(_text_extractor(media_type))
    detected = _looks_like(content)
    if detected is not None:
        raise DeclaredTypeDiffers(declared=media_type, looks_like=detected)
    return require_words(read(decode(content, charset or _charset_within(content, media_type))))


def _parse_content_type(content_type: str) -> tuple[str, str | None]:
    media_type, *parameters = content_type.split(";")
    named = dict(part.strip().lower().split("=", 1) for part in parameters)
    return media_type.strip().lower(), named.get("charset")


def _text_extractor(media_type: str) -> str:
    if media_type in _TEXT:
        return _TEXT[media_type]
    if media_type.endswith("+json"):
        return _JSON
    if media_type.startswith("text/"):
        return "text_formats:extract_text"
    raise UnknownFormat(content_type=media_type)


def _extractor(place: str) -> Callable[..., Document]:
    """The function at `module:name`, imported when it is needed: most documents need no library at all."""
    module, _, name = place.partition(":")
    extractor: Callable[..., Document] = getattr(importlib.import_module(f"memory.kps.{module}"), name)
    return extractor


def _require_binary(content: bytes, media_type: str) -> None:
    detected = _looks_like(content)
    if detected == media_type:
        return
    if content.startswith(_OLE) and _OLE_ENCRYPTED in content:
        raise DocumentProtected(declared=media_type)
    raise DeclaredTypeDiffers(declared=media_type, looks_like=detected or "text/plain")


def _looks_like(content: bytes) -> str | None:
    """Content type by signature; None for text."""
    if b"%PDF-" in content[:1024]:
        return PDF
    if content.startswith(b"PK\x03\x04"):
        return _kind_of_archive(content)
    for signature, media_type in _SIGNATURES:
        if content.startswith(signature):
            return media_type
    is_wide = any(content.startswith(bom) for bom in _BOMS)
    return "application/octet-stream" if b"\0" in content[:4096] and not is_wide else None


def _kind_of_archive(content: bytes) -> str:
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            parts = set(archive.namelist())
            if "mimetype" in parts and archive.read("mimetype").strip() == ODT.encode():
                return ODT
    except zipfile.BadZipFile as broken:
        raise CorruptDocument(reason=str(broken)) from broken
    return next((kind for part, kind in _MAIN_PARTS.items() if part in parts), "application/zip")


def _charset_within(content: bytes, media_type: str) -> str | None:
    """The charset that an HTML page declares in itself."""
    if _TEXT.get(media_type) != _HTML or content.startswith(tuple(_BOMS)):
        return None
    match = _CHARSET.search(content[:2048])
    return match[1].decode().lower() if match else None


def decode(content: bytes, charset: str | None) -> str:
    """Bytes as text, in a charset that is guessed where none is given. Raises NotText."""
    if charset is None:
        charset = next((name for bom, name in _BOMS.items() if content.startswith(bom)), None) or _guessed(content)
    try:
        text = content.decode("utf-8-sig" if charset in ("utf-8", "utf8") else charset)
    except UnicodeDecodeError as error:
        raise NotText(charset=charset, at_byte=error.start) from error
    except (LookupError, UnicodeError) as unknown:
        raise NotText(charset=charset, reason="no such charset") from unknown
    if "\0" in text:
        raise NotText(charset=charset, reason="contains NUL characters")
    return text


def _guessed(content: bytes) -> str:
    """UTF-8, or the charset of older programs whose letters make the likelier text; UTF-8 also where none does.

    Russian messages of chats that others wrote, 100 letters and longer, were all read right: 357 in windows-1251, 147
    each in koi8-r and cp866.
    """
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        if len(content) >= _GUESSED_FROM_BYTES:
            # Imported here: of a hundred documents one needs it.
            from charset_normalizer import from_bytes

            best = from_bytes(content, cp_isolation=_OLDER_CHARSETS).best()
            return best.encoding if best is not None else "utf-8"
    return "utf-8"


def content_type_of(path: PurePath, charset: str | None = None) -> str | None:
    """Content type by the extension of a file name, of text with its charset; None where nothing here reads it."""
    media_type = CONTENT_TYPES.get(path.suffix.lower())
    is_text = media_type is not None and media_type != MAIL and media_type not in _BINARY
    return f"{media_type}; charset={charset}" if charset and is_text else media_type
