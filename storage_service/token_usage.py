"""Model tokens used by each person and day, in the orchestrator's database."""

from sqlalchemy import Connection, String, delete, select
from sqlalchemy.orm import Mapped, mapped_column

from storage_service.rows import upserting
from storage_service.runs import RunBase

EVERYBODY = "*"
"""Under it the tokens of all calls are counted, whoever they were made for."""


class TokensUsedRow(RunBase):
    """Tokens that models have used for somebody on a day (UTC), `YYYY-MM-DD`."""

    __tablename__ = "tokens_used"
    identity: Mapped[str] = mapped_column(String(160), primary_key=True)
    day: Mapped[str] = mapped_column(String(10), primary_key=True)
    tokens: Mapped[int]


def add_tokens(connection: Connection, identity: str, day: str, tokens: int) -> None:
    statement = upserting(connection.dialect.name, TokensUsedRow).values(identity=identity, day=day, tokens=tokens)
    more = {"tokens": TokensUsedRow.tokens + statement.excluded.tokens}
    connection.execute(statement.on_conflict_do_update(index_elements=["identity", "day"], set_=more))


def tokens_used(connection: Connection, identity: str, day: str) -> int:
    query = select(TokensUsedRow.tokens).where(TokensUsedRow.identity == identity, TokensUsedRow.day == day)
    return connection.execute(query).scalar() or 0


def forget_tokens(connection: Connection, identity: str | None) -> None:
    """Delete what somebody has used; None: what all have."""
    statement = delete(TokensUsedRow)
    connection.execute(statement if identity is None else statement.where(TokensUsedRow.identity == identity))
