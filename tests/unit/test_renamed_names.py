import pytest

import mindbus


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Kit", "WorkerContext"),
        ("Told", "Publish"),
        ("To", "Send"),
        ("Refused", "Rejected"),
        ("CommandFailed", "ReplyError"),
    ],
)
def test_an_exported_name_of_the_last_release_still_works_and_names_its_successor(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"mindbus.{old} is now mindbus.{new}"):
        renamed = getattr(mindbus, old)

    assert renamed is getattr(mindbus, new)
