"""The provenance graph, both ways."""

from collections.abc import Sequence
from typing import Any

import pytest

from bus_schema.identities import Principal
from bus_schema.replies import Code
from bus_schema.storage import GetLineage, Lineage
from mindbus.errors import Rejected
from storage_service.catalog import Catalog
from storage_service.errors import LineageTooLarge
from tests.storage_kit import CRITIC, RESEARCHER, Depot


async def made_from(depot: Depot, inputs: Sequence[str], **changes: Any) -> str:
    return await depot.put(context={"input_artifacts": list(inputs)}, **changes)


async def lineage(depot: Depot, artifact_id: str, by: str = RESEARCHER, **wanted: object) -> Lineage:
    query = GetLineage.model_validate({"artifact_id": artifact_id} | wanted)
    answer = await depot.handle(query, by)
    assert isinstance(answer, Lineage)
    return answer


def nodes(found: Lineage) -> list[str]:
    return [each.id for each in found.nodes]


def edges(found: Lineage) -> set[tuple[str, str]]:
    return {(each.source, each.target) for each in found.edges}


async def test_an_article_leads_up_to_its_brief_and_a_brief_down_to_its_article(depot: Depot) -> None:
    brief = await depot.put(b"brief")
    report = await made_from(depot, [brief])
    ideas = await made_from(depot, [brief, report])
    article = await made_from(depot, [ideas, report])
    everything = {(brief, report), (brief, ideas), (report, ideas), (ideas, article), (report, article)}

    up, down = await lineage(depot, article), await lineage(depot, brief, direction="down")

    assert nodes(up) == nodes(down) == [brief, report, ideas, article]
    assert edges(up) == edges(down) == everything


async def test_both_ways_are_ancestors_and_descendants_but_no_siblings(depot: Depot) -> None:
    brief = await depot.put(b"brief")
    mine, sibling = await made_from(depot, [brief]), await made_from(depot, [brief])
    article = await made_from(depot, [mine, sibling])

    found = await lineage(depot, mine, direction="both")

    assert nodes(found) == [brief, mine, article]
    assert edges(found) == {(brief, mine), (mine, article)}


async def test_depth_counts_the_links_from_where_one_asks(depot: Depot) -> None:
    chain = [await depot.put(b"the first")]
    for _ in range(4):
        chain.append(await made_from(depot, [chain[-1]]))

    assert nodes(await lineage(depot, chain[4], depth=1)) == chain[3:]
    assert nodes(await lineage(depot, chain[4], depth=3)) == chain[1:]
    assert nodes(await lineage(depot, chain[0], depth=2, direction="down")) == chain[:3]
    assert nodes(await lineage(depot, chain[4], depth=100)) == chain


async def test_an_artifact_made_from_nothing_is_its_own_lineage(depot: Depot) -> None:
    alone = await depot.put(b"alone")

    found = await lineage(depot, alone, direction="both")

    assert (nodes(found), edges(found)) == ([alone], set())


async def test_what_is_hidden_is_not_there_nor_what_lies_behind_it(depot: Depot) -> None:
    source = await depot.put(b"source", visibility="public")
    secret = await made_from(depot, [source], visibility="private")
    article = await made_from(depot, [secret], visibility="public")

    seen_by_stranger = await lineage(depot, article, CRITIC)

    assert (nodes(seen_by_stranger), edges(seen_by_stranger)) == ([article], set())
    assert nodes(await lineage(depot, article)) == [source, secret, article]


async def test_the_lineage_of_what_is_hidden_is_not_found(depot: Depot) -> None:
    secret = await depot.put(b"secret", visibility="private")

    with pytest.raises(Rejected) as refused:
        await lineage(depot, secret, CRITIC)

    assert refused.value.code is Code.NOT_FOUND


async def test_a_lineage_that_no_answer_could_hold_is_refused_whole(depot: Depot) -> None:
    brief = await depot.put(b"brief")
    for _ in range(4):
        await made_from(depot, [brief])
    query = GetLineage(artifact_id=brief, direction="down")

    assert len((await Catalog(depot.database, max_edges=4).lineage(query, Principal(RESEARCHER))).edges) == 4
    with pytest.raises(LineageTooLarge):
        await Catalog(depot.database, max_edges=3).lineage(query, Principal(RESEARCHER))
