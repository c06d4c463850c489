"""The commands `episodes pack`, `unpack`, `anchor`, `feedback` and `tune`."""

from typing import Annotated

import typer

from bus_schema.episodes import AnchorReason, Layer
from bus_schema.lsm import SetAnchor, UnpackEpisode
from bus_schema.lsm_search import Feedback, TuneSearch
from bus_schema.packer import PackEpisode, PackRun, RunPacking
from mindbus.cli.console import show_result
from mindbus.cli.errors import UsageError, valid_options
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import WITHIN_S, answer_to, on_the_bus, progress_of, run
from mindbus_fleet.cli.episode_view import EpisodeIdArgument, Now, show_pack, show_tuning, show_turns

_AT_ONCE = 50


def unpack(episode_id: EpisodeIdArgument, at: Now = None, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Read an episode word by word from the log, however densely it is kept; that makes it hot again.

    [bold]Example[/bold]

    mindbus episodes unpack ep_0192…
    """
    content = answer_to(lambda: UnpackEpisode(episode_id=episode_id, at=at), acting)
    show_result(content, lambda _content: show_turns(content.raw_messages), as_json=as_json)


def anchor(
    episode_id: EpisodeIdArgument,
    off: Annotated[bool, typer.Option("--off", help="Let it go cold again, as others do.")] = False,
    reason: Annotated[AnchorReason | None, typer.Option("--reason", help="Why; default: explicit.")] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Keep an episode from ever going cold.

    [bold]Examples[/bold]

    mindbus episodes anchor ep_0192… --reason project

    mindbus episodes anchor ep_0192… --off
    """
    if off and reason is not None:
        raise UsageError("--reason says why it is an anchor, --off that it is none: give one of them")
    head = answer_to(
        lambda: SetAnchor(episode_id=episode_id, is_anchor=not off, reason=reason or AnchorReason.EXPLICIT), acting
    )
    text = f"{head.id} is {'an anchor: it never goes cold' if head.is_anchor else 'no anchor any more'}"
    show_result(head, text, as_json=as_json)


def pack(
    episode_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Only this one; default: all that are due.")
    ] = None,
    to: Annotated[Layer | None, typer.Option("--to", help="With an ID: warm, the default, or cold.")] = None,
    at: Now = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Pack what is due, as happens from time to time by itself, or one episode, due or not.

    [bold]Examples[/bold]

    mindbus episodes pack

    mindbus episodes pack --at 2026-12-01T00:00:00Z --json

    mindbus episodes pack ep_0192… --to cold
    """
    if episode_id is not None:
        fields = {"episode_id": episode_id, "to": to or Layer.WARM, "at": at}
        packed = answer_to(lambda: PackEpisode.model_validate(fields), acting, longer_by_s=WITHIN_S)
        show_result(packed, show_pack, as_json=as_json)
        if packed.outcome == "refused":
            raise typer.Exit(1)
        return
    if to is not None:
        raise UsageError("--to is for one episode; name it, or leave it to its time and its priority")
    with valid_options():
        command = RunPacking(at=at, limit=_AT_ONCE)
    done = run(_pack(command, acting))
    text = (
        f"{done.warm} episodes are warm now, {done.cold} cold: {done.words_before} words became {done.words_after}; "
        f"{done.put_back} facts were put back, {done.struck_out} struck out, {done.refused} packs refused"
    )
    show_result(done, text, as_json=as_json)


def feedback(
    search_id: Annotated[str, typer.Argument(metavar="SEARCH", help="The search, as `search --explain` names it.")],
    used: Annotated[
        list[str] | None, typer.Argument(metavar="TURN", help="Turns that were of use; none: nothing was.")
    ] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Say which turns of your own search were of use; `tune` learns from it.

    [bold]Examples[/bold]

    mindbus episodes feedback srch_0192… raw_0193…

    mindbus episodes feedback srch_0192…
    """
    fields = {"search_id": search_id, "used": used or (), "touch": True}
    answer_to(lambda: Feedback.model_validate(fields), acting)
    report = {"search_id": search_id, "used": used or []}
    show_result(report, f"useful turns of {search_id}: {len(used or [])}", as_json=as_json)


def tune(
    apply: Annotated[bool, typer.Option("--apply", help="Keep the new weights if held-out queries find more.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Fit the weights of the search to what was useful; show what held-out queries find before and after.

    [bold]Examples[/bold]

    mindbus episodes tune

    mindbus episodes tune --apply
    """
    report = answer_to(lambda: TuneSearch(apply=apply), acting, longer_by_s=WITHIN_S)
    show_result(report, show_tuning, as_json=as_json)


async def _pack(command: RunPacking, identity: str) -> PackRun:
    """Run after run; one that packs nothing has come to what cannot be packed."""
    total = PackRun(is_done=False)
    async with on_the_bus(identity) as bus:
        with progress_of("packing") as tell:
            while True:
                done = await bus.request(command, timeout_s=WITHIN_S)
                total = _sum(total, done)
                tell(total.warm + total.cold, 0 if done.is_done else total.warm + total.cold + _AT_ONCE)
                if done.is_done or not done.warm + done.cold:
                    return total


def _sum(total: PackRun, done: PackRun) -> PackRun:
    counted = {name: getattr(total, name) + getattr(done, name) for name in PackRun.model_fields if name != "is_done"}
    return PackRun(**counted, is_done=done.is_done)
