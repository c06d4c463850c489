"""What storage has refused is listed with its reason, and registered once the cause is mended, whatever breaks."""

from pathlib import Path

import pytest

from mindbus.sdk.buffer import Buffer, BufferLimits
from mindbus.sdk.failed_artifacts import failed_artifacts, put_back
from tests.sdk_kit import Bench
from tests.unit.sdk.test_buffer import BrittleDisk, Crashed, an_entry, opened

EFFECTS_OF_PUTTING_BACK = 4


@pytest.fixture
def refused(bench: Bench) -> Path:
    """The folder of all buffers, with one artifact that was set aside."""
    buffer = opened(bench)
    buffer.receive(b"content", an_entry(bench))
    buffer.set_aside("art_1", "forbidden: not yours")
    buffer.close()
    return bench.folder / "buffer"


def test_it_is_listed_with_its_owner_its_size_and_the_reason(refused: Path) -> None:
    (found,) = failed_artifacts(refused)

    assert (found.artifact_id, found.owner, found.artifact_type) == ("art_1", "agent.researcher", "draft")
    assert (found.reason, found.size_bytes, found.can_be_retried) == ("forbidden: not yours", 7, True)


def test_put_back_it_waits_in_its_owners_buffer_with_its_bytes(refused: Path, bench: Bench) -> None:
    (found,) = failed_artifacts(refused)

    assert put_back(found)

    assert failed_artifacts(refused) == []
    buffer = opened(bench)
    (entry,) = buffer.entries()
    assert buffer.bytes_of(entry).read_bytes() == b"content"


def test_an_entry_that_cannot_be_read_stays_where_it_is(refused: Path) -> None:
    (refused / "agent.researcher" / "failed" / "art_1.json").write_text("{")
    (found,) = failed_artifacts(refused)

    assert (found.can_be_retried, put_back(found)) == (False, False)
    assert failed_artifacts(refused) == [found]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies_at", range(EFFECTS_OF_PUTTING_BACK))
def test_a_crash_on_the_way_back_loses_nothing(refused: Path, bench: Bench, dies_at: int, *, after: bool) -> None:
    (found,) = failed_artifacts(refused)
    with pytest.raises(Crashed):
        put_back(found, BrittleDisk(dies_at, after=after))

    buffer = Buffer(refused, "agent.researcher", BufferLimits())
    buffer.open()
    waiting = [buffer.bytes_of(entry).read_bytes() for entry in buffer.entries()]
    aside = [(each.folder / "art_1.bytes").read_bytes() for each in failed_artifacts(refused) if each.can_be_retried]

    assert b"content" in [*waiting, *aside]
    for each in failed_artifacts(refused):
        assert put_back(each) or b"content" in waiting


def test_putting_back_takes_four_effects(refused: Path) -> None:
    disk = BrittleDisk()
    (found,) = failed_artifacts(refused)
    put_back(found, disk)

    assert disk.effects == ["make_folder", "move", "move", "remove"]
    assert len(disk.effects) == EFFECTS_OF_PUTTING_BACK
