"""Hashing beside the copying gives what hashing alone would."""

import hashlib
import os
from pathlib import Path

import pytest

from mindbus.files.disk import BackgroundSha256, WriteBehindFile

MIB = 1024 * 1024


@pytest.mark.parametrize("sizes", [[], [0], [1], [MIB, 1, MIB, 0, 70_000, MIB], [100] * 50])
def test_the_digest_is_that_of_the_pieces_in_their_order(sizes: list[int]) -> None:
    pieces = [os.urandom(size) for size in sizes]

    with BackgroundSha256() as digest:
        for piece in pieces:
            digest.update(piece)
        half_way = digest.hexdigest()
        digest.update(b"more")

        assert half_way == hashlib.sha256(b"".join(pieces)).hexdigest()
        assert digest.hexdigest() == hashlib.sha256(b"".join([*pieces, b"more"])).hexdigest()


def test_a_file_has_every_byte_that_was_written(tmp_path: Path) -> None:
    content = os.urandom(9 * MIB + 7)

    with (tmp_path / "eager").open("wb") as file:
        eager = WriteBehindFile(file)
        for start in range(0, len(content), 300_001):
            eager.write(content[start : start + 300_001])

    assert (tmp_path / "eager").read_bytes() == content
