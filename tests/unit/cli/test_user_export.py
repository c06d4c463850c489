"""The archive of one person names what could not be read."""

from pathlib import Path
from zipfile import ZipFile

from bus_schema.episodes import ColdContent, EpisodeHead
from bus_schema.lsm import EpisodePage, ListEpisodes
from bus_schema.lsm_statistics import ExplainedEpisode, ExplainEpisode
from mindbus import Worker, on_command
from mindbus.cli.user_export import UserExport
from tests.clocks import NOON
from tests.fleets import fleet_of, settings_for

_HEAD = {"id": "ep_1", "chat_id": "anna", "created_at": NOON, "last_accessed": NOON, "layer": "cold", "priority": 0.3}
_HEAD |= {"headline": "The lake", "turns": 2, "words": 20, "version": 2, "started_at": NOON, "ended_at": NOON}
_TERMS = {"recency": 0.3, "frequency": 0, "importance": 0, "relevance": 0}


class Forgetful(Worker):
    """Has an episode whose raw turns are in an artifact that is gone."""

    name = "lsm"

    @on_command
    async def list_all(self, _query: ListEpisodes) -> EpisodePage:
        return EpisodePage(items=(EpisodeHead.model_validate(_HEAD),))

    @on_command
    async def explain(self, _query: ExplainEpisode) -> ExplainedEpisode:
        content = ColdContent(headline="The lake", tags=())
        about = {"episode": _HEAD | {"content": content, "raw_log_ids": ("raw_1", "raw_2")}, "terms": _TERMS}
        return ExplainedEpisode.model_validate(about | {"turns": (), "kept_words": 9, "raw_turns": "gone"})


async def test_episodes_whose_raw_turns_are_gone_are_missing(tmp_path: Path) -> None:
    settings = settings_for(f"memory://{tmp_path}", tmp_path)
    async with fleet_of(lambda _kit: Forgetful(), settings=settings) as fleet:
        export = UserExport(fleet.bus, None, "anna")  # type: ignore[arg-type]  # no artifacts here
        with ZipFile(tmp_path / "anna.zip", "w") as archive:
            await export._write_episodes(archive)

    assert set(export._done.missing) == {"ep_1"}
