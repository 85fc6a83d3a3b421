"""Embedding a corpus in part: what the model gets, what is estimated, and that it goes on where it was."""

from collections.abc import Sequence

import numpy as np
import pytest

from bedstone.records import Chunk, Document
from bedstone.search.coverage import FIRST_PASSAGES, MIN_LEARNED, embed_first_passages
from bedstone.search.embedder import Vectors
from bedstone.search.embedders import ESTIMATOR
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.estimates import Estimator, to_units
from bedstone.store.engine import Store
from bedstone.store.engines.memory import MemoryStore

SUBJECTS = (
    "the gardener waters tulips and roses in the early morning",
    "a sailor ties the rope and reads the wind before the storm",
    "the baker lets the dough rest and heats the oven for bread",
    "an astronomer points the telescope at the rings of the planet",
    "the doctor listens to the heart and writes a short note",
    "a miner carries the lamp through the dark and narrow tunnel",
)
LISTING = "Field | Type\n" + "\n".join(f"field{number} | string | N/A" for number in range(12))


class CountingMiniLm(MiniLm):
    """Records the texts that the model gets, and can be interrupted."""

    def __init__(self, interrupt_after: int = 10**9) -> None:
        self.texts: list[str] = []
        self._interrupt_after = interrupt_after

    def embed(self, texts: Sequence[str]) -> Vectors:
        if len(self.texts) >= self._interrupt_after:
            raise KeyboardInterrupt
        self.texts += texts
        return super().embed(texts)


def fill(store: Store, documents: int, sections: int = 8) -> None:
    """Add documents of sections with one short passage each; the last section is a listing."""

    def document(number: int) -> tuple[Document, list[Chunk]]:
        name, subject = f"d{number:03}", SUBJECTS[number % len(SUBJECTS)]
        texts = [f"Part {part} of report {number}: {subject}." for part in range(sections - 1)] + [LISTING]
        title = f"Report {number}"
        chunks = [Chunk(f"{name}#{part}", text, text, title, 1, (title,)) for part, text in enumerate(texts)]
        return Document(name, title, ""), chunks

    store.put(document(number) for number in range(documents))


def vectors_by_chunk(store: Store) -> dict[int, Vectors]:
    stored = list(store.passages_between(0, 2**62))
    vectors = store.vectors([item.id for item in stored])
    return {item.passage.chunk_rowid: np.frombuffer(vectors[item.id], np.float16).astype(np.float32) for item in stored}


@pytest.fixture(scope="module")
def embedded() -> tuple[MemoryStore, CountingMiniLm]:
    store, model = MemoryStore(), CountingMiniLm()
    fill(store, 80)
    embed_first_passages(store, model, workers=1)
    return store, model


def test_the_model_gets_the_first_passages_and_few_listings(embedded: tuple[MemoryStore, CountingMiniLm]) -> None:
    _, model = embedded
    prose = [text for text in model.texts if "Part" in text]
    assert len(prose) == 80 * FIRST_PASSAGES >= MIN_LEARNED
    assert all(f"Part {part} " in text for text, part in zip(prose, [*range(FIRST_PASSAGES)] * 80, strict=True))
    assert not [text for text in model.texts if "field1 " in text], "four passages were spent before the listing"


def test_every_passage_has_a_unit_vector_near_the_one_of_the_model(
    embedded: tuple[MemoryStore, CountingMiniLm],
) -> None:
    store, _ = embedded
    found = vectors_by_chunk(store)
    assert len(found) == store.counts().chunks == 640
    assert np.allclose([np.linalg.norm(vector) for vector in found.values()], 1, atol=0.01)
    chunks = [stored for stored in store.chunks_between(0, 2**62) if stored.head.position in (5, 6)][::10]
    exact = MiniLm().embed([f"{stored.head.heading}\n\n{stored.plain}" for stored in chunks])
    near = np.array([found[stored.head.rowid] for stored in chunks]) @ exact.T
    assert np.diag(near).mean() > 0.85
    others = [near[row, column] for row in range(len(near)) for column in range(len(near)) if (row - column) % 3]
    assert np.diag(near).mean() > np.mean(others) + 0.1


def test_an_interrupted_run_goes_on_and_ends_as_if_it_had_not_been(
    embedded: tuple[MemoryStore, CountingMiniLm],
) -> None:
    store, first = MemoryStore(), CountingMiniLm(interrupt_after=150)
    fill(store, 80)
    with pytest.raises(KeyboardInterrupt):
        embed_first_passages(store, first, workers=1)
    done = store.counts().passages
    assert 0 < done < 640
    second = CountingMiniLm()
    embed_first_passages(store, second, workers=1)
    assert len(second.texts) == len(embedded[1].texts) - done, "what is in the store is not embedded again"
    expected = vectors_by_chunk(embedded[0])
    for rowid, vector in vectors_by_chunk(store).items():
        assert float(vector @ expected[rowid]) > 0.98


def test_a_small_corpus_is_embedded_in_whole() -> None:
    store, model = MemoryStore(), CountingMiniLm()
    fill(store, 10)
    embed_first_passages(store, model, workers=2)
    assert len(model.texts) == store.counts().passages == 80
    assert store.get_value(ESTIMATOR) is None


def test_a_changed_page_is_estimated_with_what_was_learned_before(
    embedded: tuple[MemoryStore, CountingMiniLm],
) -> None:
    store, model = MemoryStore(), CountingMiniLm()
    store.set_value(ESTIMATOR, embedded[0].get_value(ESTIMATOR) or "")
    fill(store, 2)
    embed_first_passages(store, model, workers=1)
    assert len(model.texts) == 2 * FIRST_PASSAGES
    assert store.counts().passages == 16


def test_an_embedder_without_sketches_embeds_everything() -> None:
    store, progress = MemoryStore(), list[int]()
    fill(store, 40)
    embed_first_passages(store, HashingEmbedder(), on_progress=progress.append)
    assert store.counts().passages == sum(progress) == 320


def test_sketches_have_the_spans_of_passages_and_tell_listings_from_sentences() -> None:
    model = MiniLm()
    for text in (f"{SUBJECTS[0]}. " * 60, LISTING * 10, "", "One sentence is short."):
        assert [(item.start, item.end) for item in model.sketch("Title", text)] == model.split("Title", text)
    assert not any(item.is_listing for item in model.sketch("Title", f"{SUBJECTS[1]}. " * 60))
    assert all(item.is_listing for item in model.sketch("Fields", LISTING * 10))


def test_an_estimator_learns_a_map_and_keeps_it_as_text() -> None:
    random = np.random.default_rng(5)
    truth = random.normal(size=(16, 16)).astype(np.float32)
    words = random.normal(size=(900, 16)).astype(np.float32)
    vectors = to_units(words @ truth)
    estimator = Estimator(16)
    estimator.learn([*words[:800]], [*vectors[:800]])
    estimator.fit()
    alone = np.zeros((100, 16), np.float32)
    found = estimator.estimate(words[800:], alone)
    assert (found * vectors[800:]).sum(1).mean() > 0.95
    kept = Estimator.from_text(estimator.to_text(), 16)
    assert kept is not None
    assert kept.learned_before == 800
    assert np.allclose(kept.estimate(words[800:], alone), found, atol=0.01)
    assert Estimator.from_text(estimator.to_text(), 8) is None
    document = np.tile(to_units(random.normal(size=(1, 16)).astype(np.float32)), (100, 1))
    assert ((estimator.estimate(words[800:], document) * document).sum(1) > (found * document).sum(1)).all()
