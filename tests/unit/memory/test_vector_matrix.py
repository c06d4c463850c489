"""Exact search over vectors by key."""

import numpy as np

from memory.vectors.cache import VectorMatrix

DIM = 8


def raw(*values: float) -> bytes:
    return np.array([*values, *[0.0] * (DIM - len(values))], dtype="<f4").tobytes()


def test_the_nearest_rows_of_the_mask_are_found() -> None:
    matrix = VectorMatrix(DIM)
    keys = ["x", "xy", "y"]
    rows = dict(zip(keys, matrix.put(keys, [raw(1), raw(1, 1), raw(0, 5)]), strict=True))
    mask = np.ones(matrix.size, dtype=np.bool_)

    assert {row for row, _ in matrix.nearest(raw(2), mask, 2)} == {rows["x"], rows["xy"]}
    mask[rows["x"]] = False
    ((row, score),) = matrix.nearest(raw(2), mask, 1)
    assert row == rows["xy"]
    assert abs(score - 2**-0.5) < 1e-6


def test_freed_rows_are_reused_and_room_is_made() -> None:
    matrix = VectorMatrix(DIM)
    (first,) = matrix.put(["a"], [raw(1)])
    assert matrix.drop("a") == first
    assert matrix.drop("a") is None
    assert matrix.put(["b", "c"], [raw(0, 1), raw(1)]) == [first, first + 1]
    capacity = matrix.capacity
    for number in range(capacity):
        matrix.put([f"more_{number}"], [raw(0, 0, 1)])

    assert matrix.capacity > capacity
    assert matrix.row_of("b") == first
    mask = np.ones(matrix.size, dtype=np.bool_)
    assert [row for row, _ in matrix.nearest(raw(0, 3), mask, 1)] == [first]


def test_few_rows_of_many_are_compared_alike() -> None:
    generator = np.random.default_rng(7)
    matrix = VectorMatrix(DIM)
    vectors = generator.normal(size=(3000, DIM)).astype("<f4")
    matrix.put(list(map(str, range(len(vectors)))), [vector.tobytes() for vector in vectors])
    mask = np.zeros(matrix.size, dtype=np.bool_)
    mask[::50] = True

    few = dict(matrix.nearest(vectors[0].tobytes(), mask, 5))
    everything = dict(matrix.nearest(vectors[0].tobytes(), np.ones_like(mask), len(mask)))
    assert all(abs(everything[row] - score) < 1e-6 for row, score in few.items())
