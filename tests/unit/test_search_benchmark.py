"""The benchmark of search answers every question at every depth."""

from pathlib import Path

from benchmarks.search import DEPTHS, Extent, as_text, filled, measure, questions
from mindbus.sql.database import Database


async def test_every_question_has_a_time_at_every_depth(tmp_path: Path) -> None:
    extent = Extent(manifests=40, times=2)
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'hidden.db'}", "storage")
    await filled(database, "hidden", extent.manifests)

    answers = await measure(database, "sqlite", "hidden", extent)
    await database.dispose()

    asked = {question.name for question in questions(extent.manifests) if question.corpus == "hidden"}
    assert {(each.question, each.depth) for each in answers} == {(name, depth) for name in asked for depth in DEPTHS}
    assert all(0 < each.p50_ms <= each.p95_ms for each in answers)
    assert len(as_text(answers).splitlines()) == 1 + len(asked)
