"""Vectors in their wire format."""

import base64
import binascii
import math
import sys
from array import array
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from bus_schema.messages import StrictValue

MAX_DIM = 4096
FLOAT_BYTES = 4

ModelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./:@+-]{0,127}$")]


class Embedding(StrictValue):
    """A vector made by `model`: `dim` little-endian float32 in base64, all finite, not all zero."""

    model: ModelName
    dim: int = Field(ge=1, le=MAX_DIM)
    data: str = Field(max_length=MAX_DIM * 6, repr=False, json_schema_extra={"contentEncoding": "base64"})

    @classmethod
    def of(cls, model: str, numbers: Iterable[float]) -> Self:
        """Build it from what a model has returned."""
        floats = _little_endian(array("f", numbers))
        return cls(model=model, dim=len(floats), data=base64.b64encode(floats.tobytes()).decode())

    @classmethod
    def from_bytes(cls, model: str, raw: bytes) -> "Embedding":
        """Build it from raw bytes that were validated when they came in."""
        return cls.model_construct(model=model, dim=len(raw) // FLOAT_BYTES, data=base64.b64encode(raw).decode())

    @cached_property
    def raw(self) -> bytes:
        """Bytes of the numbers."""
        return base64.b64decode(self.data)

    @cached_property
    def floats(self) -> "array[float]":
        """The numbers as floats."""
        return _little_endian(array("f", self.raw))

    @model_validator(mode="after")
    def _is_a_direction(self) -> Self:
        try:
            raw = base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("data is not base64") from None
        if len(raw) != self.dim * FLOAT_BYTES:
            raise ValueError(f"a vector of dim {self.dim} has {self.dim * FLOAT_BYTES} bytes, data has {len(raw)}")
        if not all(map(math.isfinite, self.floats)):
            raise ValueError("contains NaN or infinity; every number of a vector is finite")
        if not any(self.floats):
            raise ValueError("is zero throughout; such a vector is like nothing")
        return self


def _little_endian(floats: "array[float]") -> "array[float]":
    """Convert between this machine's byte order and the wire's."""
    if sys.byteorder == "big":
        floats.byteswap()
    return floats
