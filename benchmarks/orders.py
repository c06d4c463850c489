"""The message that everybody carries: about one KiB, English with Russian."""

from datetime import UTC, datetime

from pydantic import BaseModel

from bus_schema.messages import Command

_NOTE = "Leave it with the neighbours at number 12; they know. Позвоните за час до доставки, домофон не работает. "
_PLACED_AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


class Line(BaseModel):
    article: str
    quantity: int
    price_cents: int


class Receipt(BaseModel):
    serial: int
    total_cents: int


class PlaceOrder(Command[Receipt], domain="bench", action="place_order", service=None):
    """Somebody wants things; plain pydantic to those who know nothing of MindBus."""

    serial: int
    customer: str
    placed_at: datetime
    lines: list[Line]
    note: str


def order(serial: int) -> PlaceOrder:
    """One that differs from all others."""
    lines = [Line(article=f"article-{serial}-{number}", quantity=number + 1, price_cents=1999) for number in range(4)]
    return PlaceOrder(serial=serial, customer=f"user-{serial}", placed_at=_PLACED_AT, lines=lines, note=_NOTE * 4)


def receipt(placed: PlaceOrder) -> Receipt:
    """What the worker answers, where somebody asks."""
    return Receipt(serial=placed.serial, total_cents=sum(line.quantity * line.price_cents for line in placed.lines))
