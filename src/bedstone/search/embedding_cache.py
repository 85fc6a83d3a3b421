"""Vectors that were computed before, by what they were computed from."""

import sqlite3
import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from bedstone.search.embedder import Embedder, Vectors

QUERIES = 1024  # remembered in memory: the next page of a search asks the same again


class CachedEmbedder:
    """An embedder that remembers: the same text and model cost nothing the second time, in any process."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self.provider, self.name, self.languages = embedder.provider, embedder.name, embedder.languages
        self.floor, self.has_meaning = embedder.floor, embedder.has_meaning
        self.batch, self.workers, self.origin = embedder.batch, embedder.workers, embedder.origin
        self.embed_query = lru_cache(maxsize=QUERIES)(embedder.embed_query)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS vector(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")

    # A service has to be asked for these: not before somebody needs them.

    @cached_property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @cached_property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @cached_property
    def reach(self) -> float:
        return self._embedder.reach

    def passages(self, context: str, text: str) -> list[tuple[int, int]]:
        return self._embedder.passages(context, text)

    def embed(self, texts: Sequence[str]) -> Vectors:
        keys = [self._key(text) for text in texts]
        known = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            vectors = self._embedder.embed(list(missing.values()))
            fresh = {key: vector.astype(np.float16).tobytes() for key, vector in zip(missing, vectors, strict=True)}
            self._write(fresh)
            known |= fresh
        return np.stack([np.frombuffer(known[key], np.float16) for key in keys]).astype(np.float32)

    def _key(self, text: str) -> bytes:
        return sha256(f"{self.fingerprint}\n{text}".encode()).digest()[:16]

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            found = (self._db.execute("SELECT key, value FROM vector WHERE key = ?", (key,)).fetchone() for key in keys)
            return {row[0]: row[1] for row in found if row}

    def _write(self, vectors: dict[bytes, bytes]) -> None:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", vectors.items())
            self._db.execute("COMMIT")
