"""Noise for the vectors of an embedding model, to find tests that depend on a near tie.

The int8 model rounds differently from one CPU to the next, so a test must not depend on cosines that are almost equal.
Noise turns every vector by a random angle: its cosine with the original is 0.99. Semantic tests use `noisy_variants` to
check their margin. The option `--embedding-noise SEED` adds noise to a whole run, including the processes it starts.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder, Vectors

COSINE = 0.99
SEED_VARIABLE = "EMBEDDING_NOISE"
MODULE = "bedstone.search.embedders.minilm"
CLASS = "MiniLm"
STARTUP = Path(__file__).with_name("startup")  # its sitecustomize adds noise in other processes


def noisy_variants(embedder: "Embedder", count: int) -> Iterator["Embedder"]:
    """Yield the embedder itself, then variants of it with noise; each text passes through the model once."""
    embed_query = lru_cache(maxsize=None)(embedder.embed_query)
    yield embedder
    for seed in range(count):
        yield cast("Embedder", _NoisyEmbedder(embedder, embed_query, f"noise {seed}"))


class _NoisyEmbedder:
    def __init__(self, embedder: "Embedder", embed_query: "Callable[[str], Vectors]", seed: str) -> None:
        self._embedder = embedder
        self._embed_query = embed_query
        self.fingerprint = seed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_query(self, text: str) -> "Vectors":
        return with_noise(self._embed_query(text), f"{self.fingerprint} {text}")

    def embed(self, texts: Sequence[str]) -> "Vectors":
        import numpy as np  # noqa: PLC0415

        return np.stack([self.embed_query(text) for text in texts])


def with_noise(vector: "Vectors", seed: str) -> "Vectors":
    """Return a unit vector with a cosine of 0.99 to this one; the same seed turns it the same way."""
    import numpy as np  # noqa: PLC0415 - most processes never embed

    generator = np.random.default_rng(int.from_bytes(sha256(seed.encode(errors="replace")).digest()[:8]))
    sideways = generator.standard_normal(vector.shape)
    sideways -= (sideways @ vector) * vector
    sideways *= np.sqrt(1 - COSINE**2) / np.linalg.norm(sideways)
    noisy: Vectors = (COSINE * vector + sideways).astype(np.float32)
    return noisy


def turn_on(seed: int) -> None:
    """Add noise in this process, and in the processes it starts."""
    os.environ[SEED_VARIABLE] = str(seed)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(STARTUP), *filter(None, [os.environ.get("PYTHONPATH")])])
    patch_on_import()


def patch_on_import() -> None:
    """Add noise as soon as the embedder is imported, because most processes never import it."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec
        assert spec.loader
        execute = spec.loader.exec_module

        def execute_and_patch(module: Any) -> None:
            execute(module)
            _patch(getattr(module, CLASS), os.environ[SEED_VARIABLE])

        spec.loader.exec_module = execute_and_patch  # type: ignore[method-assign]
        return spec


def _patch(embedder: Any, seed: str) -> None:
    """Add noise to a class of embedders; a fingerprint of its own keeps the cache of vectors clean."""
    embed_query, fingerprint = embedder.embed_query, embedder.fingerprint.func
    embedder.embed_query = lambda self, text: with_noise(embed_query(self, text), f"{seed} {text}")
    embedder.fingerprint = cached_property(lambda self: f"{fingerprint(self)} {seed}")
    embedder.fingerprint.__set_name__(embedder, "fingerprint")
