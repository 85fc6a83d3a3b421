"""Work that is told to stop does, even while a model does not answer."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bedstone.search.embedder import Vectors
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.engines.sqlite import SqliteStore

MAX_SECONDS = 5


class SlowService(HashingEmbedder):
    """A model that answers when the test says so."""

    def __init__(self) -> None:
        self.was_called = threading.Event()
        self.may_answer = threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.was_called.set()
        assert self.may_answer.wait(60)
        return super().embed(texts)


def test_a_task_is_cancelled_while_the_model_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "a.txt").write_text("Whales sing at night.")
    model = SlowService()
    store = SqliteStore(tmp_path / "index" / "knowledge.sqlite", durable=True)
    base = KnowledgeBase(store, KnowledgeOptions(tmp_path / "documents", tmp_path / "index"), lambda: model)
    base.open()
    try:
        task = base.add(tmp_path / "a.txt")
        assert model.was_called.wait(30)
        started = time.monotonic()
        assert base.cancel(task.id)
        assert time.monotonic() - started < MAX_SECONDS
        assert base.task(task.id).status == "cancelled"
        assert (base.documents(), list((tmp_path / "documents").glob("[!.]*"))) == ([], [])
        model.may_answer.set()
        again = base.wait(base.add(tmp_path / "a.txt").id)  # the semaphore of the model is free again
        assert (again.status, store.counts().passages) == ("completed", 1)
    finally:
        model.may_answer.set()
        base.close()
