"""Models of sentence-transformers: one made on the spot is loaded from its folder, as a user's own would be."""

from pathlib import Path

import pytest

from retrieval.embedding.embedder import EmbedderRefused
from retrieval.embedding.selection import open_embedder

pytest.importorskip("sentence_transformers", reason="installed by mindbus-fleet[embed]; make test-embed runs this")

WORDS = ("query", "passage", "the", "key", "is", "under", "pot", "where", "dog", "vet", ":", "?", ".")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
DIM = 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one layer with random weights and a vocabulary of thirteen words."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    made = tmp_path_factory.mktemp("model")
    tokenizer = Tokenizer(WordLevel({word: key for key, word in enumerate((*SPECIAL, *WORDS))}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", model_max_length=64
    ).save_pretrained(made)
    torch.manual_seed(6)
    sizes = {"hidden_size": DIM, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": DIM}
    BertModel(BertConfig(vocab_size=len(SPECIAL) + len(WORDS), **sizes)).save_pretrained(made)
    return made


async def test_a_model_is_loaded_from_its_folder_and_embeds_questions_and_passages(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    embedder = await open_embedder(folder.name)
    texts = ["the key is under the pot.", "the dog is under the vet."]
    try:
        passages = await embedder.passages(texts)
        again = [(await embedder.passages([text]))[0] for text in texts]
        question = await embedder.query("where is the key?")
    finally:
        await embedder.close()

    assert (embedder.space.model, embedder.space.dim) == (folder.name, DIM)
    assert {vector.dim for vector in (*passages, question)} == {DIM}
    assert passages[0].raw != passages[1].raw
    for alone, together in zip(again, passages, strict=True):
        assert list(alone.floats) == pytest.approx(list(together.floats), abs=1e-5)


async def test_a_folder_without_a_model_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EmbedderRefused, match="empty"):
        await open_embedder("empty")
