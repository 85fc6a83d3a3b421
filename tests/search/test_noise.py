"""The noise that shows which semantic tests depend on a near tie."""

import os
import subprocess
import sys

import numpy as np
import pytest

from bedstone.search.embedder import Vectors
from bedstone.search.embedders.minilm import MiniLm
from support.noise import COSINE, SEED_VARIABLE, STARTUP, noisy_variants

PROBE = """
from bedstone.search.embedders.minilm import MiniLm
print(MiniLm().fingerprint, *MiniLm().embed(["tide tables"])[0])
"""


def test_variants_turn_every_vector_their_own_way() -> None:
    texts = ["tide tables", "opening hours"]
    original, first, second = noisy_variants(MiniLm(), 2)
    for variant in (first, second):
        vectors = variant.embed(texts)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-4)
        assert np.sum(vectors * original.embed(texts), axis=1) == pytest.approx(COSINE, abs=1e-4)
        assert np.array_equal(vectors[0], variant.embed_query(texts[0]))
    assert not np.allclose(first.embed(texts), second.embed(texts), atol=1e-3)
    assert first.fingerprint != second.fingerprint


def test_a_near_tie_does_not_survive() -> None:
    texts = ["tide tables", "tide table"]
    nearest = set()
    for embedder in noisy_variants(MiniLm(), 40):
        nearest.add(int(np.argmax(embedder.embed(texts) @ embedder.embed_query("when is high water"))))
    assert nearest == {0, 1}


def test_processes_get_the_noise_too() -> None:
    plain, *noisy = (_fingerprint_and_vector(seed) for seed in ("", "1", "1", "2"))
    assert len({fingerprint for fingerprint, _ in (plain, *noisy)}) == 3
    assert [float(vector @ plain[1]) for _, vector in noisy] == pytest.approx([COSINE] * 3, abs=1e-4)
    assert np.array_equal(noisy[0][1], noisy[1][1])
    assert not np.allclose(noisy[0][1], noisy[2][1], atol=1e-3)


def _fingerprint_and_vector(seed: str) -> tuple[str, Vectors]:
    noise = {SEED_VARIABLE: seed, "PYTHONPATH": str(STARTUP)} if seed else {}
    environment = {name: value for name, value in os.environ.items() if name not in {SEED_VARIABLE, "PYTHONPATH"}}
    made = subprocess.run(
        [sys.executable, "-c", PROBE], env=environment | noise, capture_output=True, text=True, timeout=60, check=True
    )
    fingerprint, *numbers = made.stdout.rsplit(maxsplit=MiniLm.dimensions)
    return fingerprint, np.array(numbers, np.float32)
