"""The command `episodes import`: past conversations from a JSON Lines file, with their times."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from bus_schema.dialogue import MessageText
from bus_schema.envelope import explain
from bus_schema.episodes import Speaker
from bus_schema.identities import UserId
from bus_schema.ids import derived
from bus_schema.lsm import MAX_RECORDED, Recorded, RecordExchange, SaidMessage
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.cli.console import show_result
from mindbus.cli.errors import CommandError, UsageError
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import on_the_bus, progress_of, run
from mindbus.errors import BusUnavailable, ReplyError

_MOST_TOLD = 20
# So many characters of any script are far from what a message may weigh.
_MOST_CHARACTERS = 200_000
_OWN_ID = "msg_"


class EpisodesImported(BaseModel):
    """Result of importing a file: messages in the log, and how many of them are new."""

    messages: int
    new: int
    chats: int


class TurnLine(BaseModel):
    """One line of an import: speaker, text, time and chat; other keys are ignored."""

    model_config = ConfigDict(frozen=True)
    chat_id: UserId
    role: Speaker
    content: MessageText
    time: AwareDatetime
    message_id: str | None = Field(default=None, min_length=1, max_length=200)
    speaker: str | None = Field(default=None, min_length=1, max_length=80)

    def message(self, nth: int) -> SaidMessage:
        """Without an id it is known by its words and its time, so that it is the same whenever it is read."""
        own = (self.message_id,) if self.message_id else (self.role, self.time.isoformat(), self.content, nth)
        is_ours = self.message_id is not None and self.message_id.startswith(_OWN_ID)
        message_id = self.message_id if is_ours else f"{_OWN_ID}{derived('episode import', self.chat_id, *own)}"
        fields = self.model_dump(include={"role", "content", "time", "speaker"})
        return SaidMessage.model_validate(fields | {"message_id": message_id})


@dataclass(frozen=True)
class ImportedTurn:
    """A message with the number of its line."""

    line: int
    chat_id: str
    message: SaidMessage


@dataclass(frozen=True)
class TurnBatch:
    """Messages of one chat, in the order of their times."""

    said: tuple[ImportedTurn, ...]

    @property
    def command(self) -> RecordExchange:
        return RecordExchange(chat_id=self.said[0].chat_id, messages=tuple(each.message for each in self.said))

    @property
    def lines(self) -> str:
        numbers = [each.line for each in self.said]
        first, last = min(numbers), max(numbers)
        return f"line {first}" if first == last else f"lines {first} to {last}"


def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, readable=True, help="JSON, a message a line."),
    ],
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Import what was said into long-term memory, with the times of the file; repeated, it changes nothing.

    A line is {chat_id, role, content, time}, with message_id and speaker where they are known; role is user or
    assistant, time has a zone. Nothing is sent before every line can be used.

    [bold]Examples[/bold]

    mindbus episodes import chats.jsonl

    mindbus episodes import chats.jsonl --json
    """
    said = read_turns(file)
    with progress_of("remembering") as tell:
        imported = run(_import(said, acting, tell))
    text = f"{imported.messages} messages of {imported.chats} chats are remembered, {imported.new} of them new"
    show_result(imported, text, as_json=as_json)


async def _import(said: list[ImportedTurn], identity: str, tell: Callable[[int, int], None]) -> EpisodesImported:
    done = new = 0
    tell(done, len(said))
    async with on_the_bus(identity) as bus:
        for batch in batches_of(said):
            new += (await _recorded(batch, done, bus)).new
            done += len(batch.said)
            tell(done, len(said))
    return EpisodesImported(messages=done, new=new, chats=len({each.chat_id for each in said}))


async def _recorded(batch: TurnBatch, done: int, bus: Client) -> Recorded:
    try:
        return await bus.request(batch.command)
    except (ReplyError, BusUnavailable) as no:
        code = no.code if isinstance(no, ReplyError) else Code.UNAVAILABLE
        kept = f"{done} messages are remembered; the same import again goes on from there"
        raise CommandError(f"{batch.lines}: {no}\n{kept}", code) from no


def read_turns(file: Path) -> list[ImportedTurn]:
    """All that a file says. Raises UsageError, which names every line that cannot be used."""
    try:
        content = file.read_bytes()
    except OSError as unreadable:
        raise UsageError(f"{file} cannot be read: {unreadable.strerror}") from unreadable
    turns: dict[tuple[str, str], ImportedTurn] = {}
    times: Counter[TurnLine] = Counter()
    problems: list[str] = []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            read = TurnLine.model_validate_json(line)
            times[read] += 1
            turn = ImportedTurn(number, read.chat_id, read.message(times[read]))
        except ValidationError as invalid:
            problems.append(f"{file}:{number}: {_explained(invalid)}")
            continue
        first = turns.setdefault((turn.chat_id, str(turn.message.message_id)), turn)
        if first.message != turn.message:
            problems.append(f"{file}:{number}: message_id: is that of line {first.line}, which says something else")
    if problems:
        rest = [f"with {len(problems) - _MOST_TOLD} more lines"] if len(problems) > _MOST_TOLD else []
        raise UsageError("\n".join(["nothing was sent; mend", *problems[:_MOST_TOLD], *rest]))
    if not turns:
        raise UsageError(f"{file} says nothing; a line is {{chat_id, role, content, time}} in JSON")
    return list(turns.values())


def batches_of(said: Iterable[ImportedTurn]) -> Iterator[TurnBatch]:
    """Chat by chat, as time went; none is larger than what is taken at once."""
    batch: list[ImportedTurn] = []
    size = 0
    for each in sorted(said, key=lambda each: (each.chat_id, each.message.time)):
        length = len(each.message.content)
        is_full = len(batch) == MAX_RECORDED or size + length > _MOST_CHARACTERS
        if batch and (is_full or batch[0].chat_id != each.chat_id):
            yield TurnBatch(tuple(batch))
            batch, size = [], 0
        batch.append(each)
        size += length
    if batch:
        yield TurnBatch(tuple(batch))


def _explained(invalid: ValidationError) -> str:
    first = invalid.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return f"is not JSON: {first['ctx']['error'].replace(' at line 1', '')}"
    if any(error["type"] == "timezone_aware" for error in invalid.errors(include_url=False, include_input=False)):
        return f"{explain(invalid)}; write it as 2026-04-01T12:00:00Z or 2026-04-01T15:00:00+03:00"
    return explain(invalid)
