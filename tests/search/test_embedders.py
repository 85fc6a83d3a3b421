"""One suite for every embedder: what `Embedder` promises.

To run it on the embedder of an installed package: `pytest tests/search/test_embedders.py --embedder NAME`.
"""

from itertools import pairwise

import numpy as np
import pytest

from acme_diary.embedder import TrigramEmbedder
from bedstone.search.embedder import Embedder, EmbedderFactory
from bedstone.search.embedders import EMBEDDERS
from bedstone.settings import EmbeddingSettings

NAMES = ["hash", "minilm", "trigrams", "use-multilingual"]
TEXTS = ["Turn the lantern before the tide.", "运行安装程序", "", "Raise the timeout of a slow call."]
SAME = 0.97  # minimum cosine of two vectors of one text: some models round differently from call to call


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--embedder")
        metafunc.parametrize("name", [chosen] if chosen else NAMES)


def factory(name: str) -> EmbedderFactory:
    return TrigramEmbedder if name == "trigrams" else EMBEDDERS.load(name)


@pytest.fixture
def embedder(name: str) -> Embedder:
    return factory(name).from_settings(EmbeddingSettings(provider=name), None)


def test_it_says_what_it_is(name: str, embedder: Embedder) -> None:
    assert embedder.provider == name
    assert embedder.name
    assert embedder.fingerprint
    assert embedder.languages
    assert embedder.workers >= 1


def test_vectors_are_units_of_its_dimensions(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimensions)
    assert vectors.dtype == np.dtype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1)
    assert all(abs(length - 1) < 0.01 for length, text in zip(lengths, TEXTS, strict=True) if text)
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_a_text_has_the_same_vector_in_every_call(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    for row, text in enumerate(TEXTS):
        if text:
            assert float(embedder.embed([text])[0] @ together[row]) > SAME
            assert float(embedder.embed_query(text) @ together[row]) > SAME


def test_it_is_found_again_by_its_origin(name: str, embedder: Embedder) -> None:
    origin = {"provider": name, "model": embedder.name, "dimensions": embedder.dimensions, **embedder.origin}
    again = factory(name).from_settings(EmbeddingSettings(), origin)
    assert (again.fingerprint, again.dimensions) == (embedder.fingerprint, embedder.dimensions)
    assert float(again.embed_query(TEXTS[0]) @ embedder.embed_query(TEXTS[0])) > SAME


def test_passages_cover_the_text(embedder: Embedder) -> None:
    text = "The keeper trims the wick and winds the clock. " * 200
    passages = embedder.split("Lighthouse", text.strip())
    assert passages[0][0] == 0
    assert passages[-1][1] == len(text.strip())
    assert len(passages) > 1
    assert all(start <= end < last for (_, end), (start, last) in pairwise(passages))
    assert len(embedder.split("", "short")) == 1
