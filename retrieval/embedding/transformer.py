"""Encoder of BERT (Devlin et al. 2019) as a graph for ONNX Runtime, its products of matrices in integers of eight bits.

The file is written without the package `onnx`, which takes more room than the model; field numbers are those of
ONNX's `onnx.proto`.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = Callable[[str], Floats]

# A bit less than eight: processors without VNNI add pairs of products in 16 bits.
_LEVELS = 63
_OWN = "com.microsoft"
# Versions of ONNX's operators, of ONNX Runtime's own ones, and of the file format.
_OPERATORS, _OWN_OPERATORS, _FORMAT = 17, 1, 9
_TYPES = {np.dtype(np.float32): 1, np.dtype(np.int8): 3, np.dtype(np.int64): 7}
_FLOAT, _INT, _INTS = 1, 2, 7

Attribute = int | float | Sequence[int]
Field = int | float | str | bytes


class Encoder:
    """Network whose every call computes on the calling thread; threads may share it."""

    def __init__(self, tensors: Tensors, layers: int, heads: int, epsilon: float) -> None:
        # Imported here: it takes 25 MiB.
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # They would be kept for every length of a text.
        options.enable_mem_pattern = False
        file = _EncoderGraph(tensors, heads, epsilon).serialized(layers)
        self._session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def mean(self, rows: Floats) -> Floats:
        """Mean output, shape (dim,), of a text from the embeddings of its tokens, shape (tokens, dim)."""
        (means,) = self._session.run(None, {"rows": rows[np.newaxis]})
        return np.asarray(means[0], dtype=np.float32)


class _EncoderGraph:
    """Graph of the network; `tensors` are its weights by their names in the file."""

    def __init__(self, tensors: Tensors, heads: int, epsilon: float) -> None:
        self._tensors, self._heads, self._epsilon = tensors, heads, epsilon
        self._graph = _OnnxGraph()

    def serialized(self, layers: int) -> bytes:
        dim = len(self._tensors("emb.ln.b"))
        norm = [self._constant(f"emb.ln.{part}") for part in "wb"]
        rows = self._graph.node("LayerNormalization", "rows", *norm, axis=-1, epsilon=self._epsilon)
        for number in range(layers):
            rows = self._layer(rows, f"l{number}")
        mean = self._graph.node("ReduceMean", rows, axes=[1], keepdims=0)
        return self._graph.serialized(("rows", [1, "tokens", dim]), (mean, [1, dim]))

    def _layer(self, rows: str, name: str) -> str:
        attended = self._added(rows, self._product(self._attention(rows, name), f"{name}.ao"), name, "a")
        widened = self._product(attended, f"{name}.fi")
        active = self._graph.node("BiasGelu", widened, self._constant(f"{name}.fi.b"), own=True)
        return self._added(attended, self._product(active, f"{name}.fo"), name, "f")

    def _attention(self, rows: str, name: str) -> str:
        parts = [f"{name}.{part}" for part in "qkv"]
        bias = np.concatenate([self._tensors(f"{part}.b") for part in parts])
        sizes = self._graph.constant(np.full(len(parts), len(bias) // len(parts), dtype=np.int64))
        projected = self._graph.nodes("Split", self._product(rows, *parts), sizes, outputs=len(parts), axis=-1)
        return self._graph.node(
            "MultiHeadAttention", *projected, self._graph.constant(bias), own=True, num_heads=self._heads
        )

    def _added(self, rows: str, change: str, name: str, part: str) -> str:
        """Normalized sum of the rows, of what a product has made of them, and of its bias."""
        norm, bias = (f"{name}.aln", f"{name}.ao.b") if part == "a" else (f"{name}.oln", f"{name}.fo.b")
        constants = [self._constant(each) for each in (f"{norm}.w", f"{norm}.b", bias)]
        return self._graph.node("SkipLayerNormalization", rows, change, *constants, own=True, epsilon=self._epsilon)

    def _product(self, rows: str, *names: str) -> str:
        """Rows times matrices, side by side; each row is scaled to its largest number, each column to its own."""
        columns = np.concatenate(
            [self._tensors(f"{each}.w").reshape(len(self._tensors(f"{each}.b")), -1) for each in names]
        )
        scales = (np.abs(columns).max(axis=1) / _LEVELS).astype(np.float32)
        levels = np.round(columns / scales[:, np.newaxis]).astype(np.int8)
        largest = self._graph.node("ReduceMax", self._graph.node("Abs", rows), axes=[-1], keepdims=1)
        product = self._graph.node(
            "DynamicQuantizeMatMul",
            self._graph.node("Div", rows, largest),
            self._graph.constant(levels.T),
            self._graph.constant(scales),
            own=True,
        )
        return self._graph.node("Mul", product, largest)

    def _constant(self, name: str) -> str:
        return self._graph.constant(self._tensors(name))


class _OnnxGraph:
    """Graph under construction: operators and constants have names, by which others refer to them."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, values: NDArray[Any]) -> str:
        """Name of an array: float32, int8 or int64."""
        name = f"constant{len(self._constants)}"
        dims = ((1, size) for size in values.shape)
        raw = np.ascontiguousarray(values).tobytes()
        self._constants.append(_message(*dims, (2, _TYPES[values.dtype]), (8, name), (9, raw)))
        return name

    def node(self, operator: str, *inputs: str, own: bool = False, **attributes: Attribute) -> str:
        """Name of an operator's output; `own` operators are those of ONNX Runtime alone."""
        return self.nodes(operator, *inputs, outputs=1, own=own, **attributes)[0]

    def nodes(self, operator: str, *inputs: str, outputs: int, own: bool = False, **attributes: Attribute) -> list[str]:
        """Names of an operator's outputs."""
        names = [f"{operator}{len(self._nodes)}.{number}" for number in range(outputs)]
        fields: list[tuple[int, Field]] = [(1, name) for name in inputs]
        fields += [(2, name) for name in names]
        fields += [(4, operator), (7, _OWN if own else "")]
        fields += [(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(_message(*fields))
        return names

    def serialized(self, given: tuple[str, Sequence[int | str]], made: tuple[str, Sequence[int | str]]) -> bytes:
        """The file, with the name and the shape of the input and of the output; a dimension with a name varies."""
        graph = _message(
            *((1, node) for node in self._nodes),
            (2, "graph"),
            *((5, constant) for constant in self._constants),
            (11, _floats(*given)),
            (12, _floats(*made)),
        )
        versions = ((8, _message((1, domain), (2, n))) for domain, n in (("", _OPERATORS), (_OWN, _OWN_OPERATORS)))
        return _message((1, _FORMAT), (7, graph), *versions)


def _attribute(name: str, value: Attribute) -> bytes:
    match value:
        case int():
            return _message((1, name), (3, value), (20, _INT))
        case float():
            return _message((1, name), (2, value), (20, _FLOAT))
        case _:
            return _message((1, name), *((8, each) for each in value), (20, _INTS))


def _floats(name: str, shape: Sequence[int | str]) -> bytes:
    """Description of an array of float32."""
    dims = (_message((1 if isinstance(size, int) else 2, size)) for size in shape)
    tensor = _message((1, _TYPES[np.dtype(np.float32)]), (2, _message(*((1, dim) for dim in dims))))
    return _message((1, name), (2, _message((1, tensor))))


def _message(*fields: tuple[int, Field]) -> bytes:
    """Fields by number in the wire format of protocol buffers."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: Field) -> bytes:
    match value:
        case int():
            return _varint(number << 3) + _varint(value)
        case float():
            return _varint(number << 3 | 5) + struct.pack("<f", value)
        case _:
            raw = value.encode() if isinstance(value, str) else value
            return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; a negative number as one of 64 bits."""
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])
