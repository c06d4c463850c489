"""An empty world to begin with."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

from sqlalchemy.engine import make_url

from bus_schema.data import ClearData
from mindbus.cli.errors import UsageError
from mindbus.cli.options import LOCAL_USER
from mindbus.cli.owners import CLEAR, Outcome, ask_owners, others_that_take
from mindbus.cli.paging import WITHIN_S
from mindbus.cli.session import on_the_bus
from mindbus.settings import Settings


@dataclass(frozen=True)
class Clearing:
    """Has every owner of data that is started clear its own."""

    owners: Sequence[str]
    others: Sequence[str]
    settings: Settings

    @classmethod
    def by(cls, workers: Collection[str], settings: Settings) -> Self:
        """Raises UsageError where none of the workers owns any data."""
        owners = [name for name in CLEAR if name in workers]
        if not owners:
            raise UsageError(f"none of these workers owns data; --clear needs some of {', '.join(CLEAR)}")
        others = [name for name in others_that_take(ClearData, settings) if name in workers]
        return cls(owners, others, settings)

    @property
    def question(self) -> str:
        """What has to be agreed to."""
        settings = self.settings
        urls = {settings.database_of(name) for name in self.owners if name != "sim"}
        databases = sorted(make_url(url).render_as_string(hide_password=True) for url in urls)
        places = ", ".join([*databases, settings.files_url])
        return f"Remove all data of {', '.join([*self.owners, *self.others])}, for good? They lie in {places}"

    async def work(self) -> Outcome:
        """Raises Failed unless every owner has done it."""
        async with on_the_bus(LOCAL_USER, self.settings) as bus:
            command = ClearData(confirm=True)
            outcome = await ask_owners(bus, command, self.owners, self.others, within_s=WITHIN_S)
        outcome.require_all()
        return outcome
