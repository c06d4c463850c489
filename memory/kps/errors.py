"""Errors of document extraction; all are rejections with a hint for the caller."""

from bus_schema.replies import Code
from mindbus.errors import Rejected


class UnknownFormat(Rejected):
    """Nothing here reads this content type; send text, Markdown, HTML, PDF, JSON, DOCX, PPTX or XLSX as such."""


class DeclaredTypeDiffers(Rejected):
    """The bytes are not of the declared content type; declare what they are, or send the right file."""


class NotText(Rejected):
    """The text is not in its charset; name the right one, such as text/plain; charset=windows-1251."""


class CorruptDocument(Rejected):
    """The document is damaged, cut off or not well-formed; open it where it was made, then export it anew."""


class DocumentProtected(Rejected):
    """The document is encrypted or asks for a password; save a copy without protection, then send that."""


class NoTextFound(Rejected):
    """There are no words in the document; of scanned pages or pictures make text first, by OCR."""


class DocumentTooLarge(Rejected):
    """The document has more bytes than are read; split it, or raise MINDBUS_KPS_MAX_BYTES."""

    code = Code.TOO_LARGE


class ExtractionTooLarge(Rejected):
    """Reading the document takes too long, or unpacks far more than is read; split it, or export it more simply."""

    code = Code.TOO_LARGE


class MetadataFull(Rejected):
    """The initial metadata leaves no room for part, page and section; have less of it, the content can say it."""


class SourceDiffers(Rejected):
    """The artifact is not the one that the ref describes; take the ref from storage."""

    code = Code.CHECKSUM_MISMATCH
