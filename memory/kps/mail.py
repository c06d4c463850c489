"""Extraction from a mail: its subject, who wrote it to whom and when, its words; attachments are left out."""

import email
from email import policy
from email.message import EmailMessage
from typing import cast

from memory.kps.document import Block, Composer, CorruptDocument, Document
from memory.kps.text_formats import extract_html, extract_text

_NAMED = ("From", "To", "Cc", "Date")


def extract_mail(content: bytes) -> Document:
    """The subject as a heading, the head as lines, then the words. Raises CorruptDocument."""
    mail = email.message_from_bytes(content, policy=policy.default)
    if not mail.keys():
        raise CorruptDocument(reason="a mail begins with lines such as `From: …`")
    composer = Composer()
    composer.heading(str(mail["Subject"] or ""), 1)
    composer.lines("\n".join(f"{name}: {mail[name]}" for name in _NAMED if mail[name]))
    for document in _words(mail):
        for block in document.blocks:
            _add(composer, block, document.text[block.start : block.end])
    return composer.document()


def _words(mail: EmailMessage) -> list[Document]:
    body = mail.get_body(preferencelist=("plain", "html"))
    if body is None:
        return []
    try:
        text = cast("EmailMessage", body).get_content()
    except (LookupError, ValueError) as unreadable:
        raise CorruptDocument(reason=f"its text cannot be read: {unreadable}") from unreadable
    return [extract_html(text) if body.get_content_subtype() == "html" else extract_text(text)]


def _add(composer: Composer, block: Block, text: str) -> None:
    if block.kind == "heading":
        composer.heading(text, min(block.level + 1, 6))
    elif block.kind == "lines":
        composer.lines(text)
    elif block.kind == "table":
        composer.table(text)
    else:
        composer.prose(text)
