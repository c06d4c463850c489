"""Extraction from a mail: its subject, who wrote it to whom and when, its words; attachments are left out."""

import email
from contextlib import suppress
from email import policy
from email.message import EmailMessage
from typing import cast

from memory.kps.document import Block, Composer, CorruptDocument, Document, NotText
from memory.kps.formats import decode
from memory.kps.text_formats import extract_html, extract_text

_NAMED = ("From", "To", "Cc", "Date")


def extract_mail(content: bytes) -> Document:
    """The subject as a heading, the head as lines, then the words. Raises CorruptDocument."""
    mail = email.message_from_bytes(content, policy=policy.default)
    if not mail.keys():
        raise CorruptDocument(reason="a mail begins with lines such as `From: …`")
    composer = Composer()
    composer.heading(_header(mail, "Subject"), 1)
    composer.lines("\n".join(f"{name}: {told}" for name in _NAMED if (told := _header(mail, name))))
    for document in _words(mail):
        for block in document.blocks:
            _add(composer, block, document.text[block.start : block.end])
    return composer.document()


def _header(mail: EmailMessage, name: str) -> str:
    """A header as text, as it was written where the library cannot parse it, as many a malformed address."""
    try:
        return str(mail[name] or "")
    except (LookupError, AttributeError, TypeError, ValueError):
        written = next(str(value) for key, value in mail.raw_items() if key.lower() == name.lower())
        return " ".join(written.split())


def _words(mail: EmailMessage) -> list[Document]:
    body = cast("EmailMessage | None", mail.get_body(preferencelist=("plain", "html")))
    if body is None:
        return []
    try:
        text = _text_of(body)
    except (LookupError, ValueError) as unreadable:
        raise CorruptDocument(reason=f"its text cannot be read: {unreadable}") from unreadable
    return [extract_html(text) if body.get_content_subtype() == "html" else extract_text(text)]


def _text_of(body: EmailMessage) -> str:
    content = body.get_payload(decode=True)
    if body.get_content_charset("us-ascii") == "us-ascii" and isinstance(content, bytes):
        # Not all who write other letters declare them; of a few words nothing can be guessed, and the rest is kept.
        with suppress(NotText):
            return decode(content, None)
    return str(body.get_content())


def _add(composer: Composer, block: Block, text: str) -> None:
    if block.kind == "heading":
        composer.heading(text, min(block.level + 1, 6))
    elif block.kind == "lines":
        composer.lines(text)
    elif block.kind == "table":
        composer.table(text)
    else:
        composer.prose(text)
