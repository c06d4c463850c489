"""Mem0 without a model, on its local vector store: a process that is told where to in its first line.

It runs in an environment of its own (`benchmarks/mem0-requirements.txt`) and embeds nothing itself: the vectors come
with the texts. `infer=False` stores what it is given; nothing leaves this machine.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.storage_children import READY


class GivenVectors:
    """An embedder that has been told every vector; Mem0 strips what is searched for, and says what each is for."""

    def __init__(self) -> None:
        self.by_text: dict[str, list[float]] = {}

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.by_text[text.strip()]

    def learn(self, vectors: dict[str, list[float]]) -> None:
        self.by_text |= {text.strip(): vector for text, vector in vectors.items()}


def open_mem0(folder: Path, dim: int, vectors: GivenVectors) -> Any:
    """A memory whose language model is never asked."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}
    from mem0 import Memory

    store = {"collection_name": "turns", "path": str(folder / "qdrant"), "embedding_model_dims": dim, "on_disk": True}
    nobody = {"api_key": "none", "openai_base_url": "http://127.0.0.1:9/"}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": {"provider": "openai", "config": nobody},
            "llm": {"provider": "openai", "config": nobody},
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = vectors
    return memory


def stored(memory: Any, items: list[list[str]]) -> dict[str, Any]:
    began = time.perf_counter()
    for chat_id, turn_id, text in items:
        said = [{"role": "user", "content": text}]
        memory.add(said, user_id=chat_id, metadata={"turn": turn_id}, infer=False)
    return {"seconds": time.perf_counter() - began}


def found(memory: Any, order: dict[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    results = memory.search(order["text"], top_k=order["count"], filters={"user_id": order["chat_id"]}, threshold=0.0)
    seconds = time.perf_counter() - began
    return {"found": [item["metadata"]["turn"] for item in results["results"]], "seconds": seconds}


def main() -> None:
    logging.disable(logging.WARNING)
    folder, dim = json.loads(sys.stdin.readline())
    vectors = GivenVectors()
    memory = open_mem0(Path(folder), dim, vectors)
    print(READY, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "vectors" in order:
            vectors.learn(order["vectors"])
        elif "items" in order:
            print(json.dumps(stored(memory, order["items"])), flush=True)
        else:
            vectors.learn({order["text"]: order["vector"]})
            print(json.dumps(found(memory, order)), flush=True)


if __name__ == "__main__":
    main()
