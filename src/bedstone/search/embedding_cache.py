"""Keep the vectors of texts that were embedded before."""

import logging
import sqlite3
import threading
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from bedstone.errors import Unavailable
from bedstone.permissions import create_private_file, make_private_folder
from bedstone.search.embedder import Embedder, Vectors

logger = logging.getLogger(__name__)

MAX_CACHED_QUERIES = 1024  # in memory: the next page of a search embeds the same query


class CachedEmbedder:
    """An embedder with a cache: the same text and model cost nothing the second time, in any process."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self.embed_query = lru_cache(maxsize=MAX_CACHED_QUERIES)(embedder.embed_query)
        self._lock = threading.Lock()
        self._has_failed = False
        try:
            make_private_folder(path.parent)
            self._db = _open(path)
        except (OSError, sqlite3.Error) as error:
            raise Unavailable(f"Cannot open the embedding cache {path}: {error}") from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Vectors:
        keys = [self._key(text) for text in texts]
        known = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            vectors = self._embedder.embed(list(missing.values()))
            fresh = {key: vector.astype(np.float16).tobytes() for key, vector in zip(missing, vectors, strict=True)}
            self._keep(fresh)
            known |= fresh
        return np.stack([np.frombuffer(known[key], np.float16) for key in keys]).astype(np.float32)

    def embed_uncached(self, text: str) -> Vectors:
        """Ask the model itself, to find out whether it answers."""
        return self._embedder.embed_query(text)

    def _keep(self, vectors: dict[bytes, bytes]) -> None:
        """Keep vectors for the next time; on a full disk they are made again."""
        try:
            self._write(vectors)
        except sqlite3.Error as error:
            if not self._has_failed:
                logger.warning("Cannot keep vectors in the cache: %s", error, extra={"action": "cache_failed"})
            self._has_failed = True
        else:
            self._has_failed = False

    def _key(self, text: str) -> bytes:
        return sha256(f"{self._embedder.fingerprint}\n{text}".encode()).digest()[:16]

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        try:
            return self._find(keys)
        except sqlite3.Error:  # the model makes them again
            return {}

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            found = (self._db.execute("SELECT key, value FROM vector WHERE key = ?", (key,)).fetchone() for key in keys)
            return {row[0]: row[1] for row in found if row}

    def _write(self, vectors: dict[bytes, bytes]) -> None:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", vectors.items())
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise


def _open(path: Path) -> sqlite3.Connection:
    create_private_file(path)
    db = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE IF NOT EXISTS vector(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
    return db
