"""The commands `memory add`, `update` and `rm`."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bus_schema.glm import DeleteKem, KemChanges, StoreKem, UpdateKem
from bus_schema.kem import Kem, KemDraft
from mindbus.cli.console import show_result
from mindbus.cli.errors import UsageError
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import answer_to, on_the_bus, run
from mindbus_fleet.cli.memory_options import (
    ContentType,
    ExpiresAt,
    File,
    KemIdArgument,
    Meta,
    Reader,
    Supersedes,
    TextOption,
    ValidFrom,
    ValidTo,
    Visibility,
    Writer,
    content_of,
    get_kem,
    given,
    parse_metadata,
    rights_of,
    show_kem,
    times_of,
    valid,
)


def add(
    text: TextOption = None,
    file: File = None,
    meta: Meta = None,
    kem_id: Annotated[str | None, typer.Option("--id", help="An id of your own: repeating replaces.")] = None,
    content_type: ContentType = None,
    visibility: Visibility = None,
    reader: Reader = None,
    writer: Writer = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    expires_at: ExpiresAt = None,
    supersedes: Supersedes = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Remember a text.

    [bold]Examples[/bold]

    mindbus memory add --text "The release was moved to Friday." --meta project_id=apollo

    mindbus memory add --file notes.md --meta tags:='["plan", "q3"]' --visibility private

    mindbus memory add --text "…" --reader agent.critic --as agent.researcher

    mindbus memory add --text "The release is on December 4." --supersedes kem_0192…

    mindbus memory add --text "Lunch is at 13:00 today." --expires-at 2026-12-01T18:00
    """
    fields: dict[str, Any] = {"content": content_of(text, file), "metadata": parse_metadata(meta or []), "id": kem_id}
    fields |= {"content_type": content_type, "supersedes": supersedes} | times_of(
        valid_from=valid_from, valid_to=valid_to, expires_at=expires_at
    )
    draft = valid(KemDraft, given(fields | rights_of(visibility, reader, writer)))
    kem = answer_to(lambda: StoreKem(kem=draft), acting)
    show_result({"kem_id": kem.id}, kem.id, as_json=as_json)


def update(
    kem_id: KemIdArgument,
    text: TextOption = None,
    file: File = None,
    meta: Meta = None,
    content_type: ContentType = None,
    visibility: Visibility = None,
    reader: Reader = None,
    writer: Writer = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    expires_at: ExpiresAt = None,
    expected_version: Annotated[
        int | None, typer.Option("--expected-version", min=1, help="Otherwise a conflict: exit 1.")
    ] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Change a unit in part; what is not mentioned stays, other metadata included. K:=null takes a key away.

    [bold]Examples[/bold]

    mindbus memory update kem_0192… --text "The release is on Monday."

    mindbus memory update kem_0192… --meta state=done --meta due:=null --expected-version 3

    mindbus memory update kem_0192… --valid-to 2026-12-01
    """
    content = content_of(text, file) if text is not None or file is not None else None
    changes = given({"content": content, "content_type": content_type} | rights_of(visibility, reader, writer))
    changes |= times_of(valid_from=valid_from, valid_to=valid_to, expires_at=expires_at)
    metadata = parse_metadata(meta or [])
    if not changes and not metadata:
        raise UsageError("say what is to change: --text, --meta, --visibility, …")
    show_kem(run(_update(kem_id, changes, metadata, expected_version, acting)), as_json=as_json)


def rm(
    kem_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Such as kem_0192….")],
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Delete units for good, wherever they are kept.

    [bold]Example[/bold]

    mindbus memory rm kem_0192…
    """
    run(_remove([valid(DeleteKem, {"kem_id": kem_id}) for kem_id in kem_ids], acting))
    show_result({"removed": kem_ids}, f"{', '.join(kem_ids)} forgotten", as_json=as_json)


async def _update(
    kem_id: str, changes: dict[str, Any], metadata: dict[str, Any], expected_version: int | None, identity: str
) -> Kem:
    """Metadata is set as a whole, so it is read first, then changed only if nobody else has done so meanwhile."""
    async with on_the_bus(identity, speaks=True) as bus:
        if metadata:
            kem = await get_kem(kem_id, bus)
            merged = {key: value for key, value in (kem.metadata | metadata).items() if value is not None}
            changes, expected_version = changes | {"metadata": merged}, expected_version or kem.version
        valid_changes = valid(KemChanges, changes)
        wanted = {"kem_id": kem_id, "changes": valid_changes, "expected_version": expected_version}
        return await bus.request(valid(UpdateKem, wanted))


async def _remove(commands: Sequence[DeleteKem], identity: str) -> None:
    async with on_the_bus(identity) as bus:
        for command in commands:
            await bus.request(command)
