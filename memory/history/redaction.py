"""Redaction of secrets in log lines."""

import re

from mindbus.logs import without_signatures

REDACTED = "[redacted]"

_NAMES = (
    r"(?:(?:api|access|private|secret)[ _-]?key|client[ _-]?secret|secret|token|pass(?:word|wd|phrase)|pwd|credentials?"
    r"|парол[ьяюе]м?|токен\w{0,2}|секрет\w{0,2}|(?:api[ -]?)?ключ)"
)
# The first group is kept.
_SECRETS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"()-----BEGIN[^-]{0,40}PRIVATE KEY-----.*?(?:-----END[^-]{0,40}-----|$)",
        r"(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:\w+\s+)?)[^\s\"',;]+",
        r"(\bbearer\s+)[^\s\"',;]+",
        r"(\w://[^\s/:@]*:)[^\s/@]+(?=@)",
        rf"({_NAMES}[\"']?\s*(?:=>|[:=]|—|\bis\b|\bэто\b)\s*[\"']?)[^\s\"',;]+",
        # Without a separator, only values that look like a secret.
        rf"({_NAMES}\s+)(?=[^\s,;]*\d)[^\s\"',;]{{6,}}",
        r"()\b(?:sk-|gh[pousr]_|github_pat_|glpat-|hf_|xox[abprs]-)[\w-]{10,}",
        r"()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"()\bAIza[\w-]{35}",
        r"()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    )
)


def redacted(text: str) -> str:
    """The text without keys, tokens and passwords, as far as they can be recognised."""
    for secret in _SECRETS:
        text = secret.sub(rf"\g<1>{REDACTED}", text)
    return without_signatures(text)
