"""The rates that estimates are made with, kept in the store."""

import threading

from bedstone.ingest.process import Limits
from bedstone.search.live_index import LiveIndex
from bedstone.services.knowledge.estimates import VALUE, Bounds, Estimator, Speeds, Timeline
from bedstone.store.engine import Store


class LearnedSpeeds:
    """Learns from every completed task."""

    def __init__(self, store: Store, index: LiveIndex) -> None:
        limits = Limits()
        self._store = store
        self._index = index
        self._bounds = Bounds(limits.seconds, limits.seconds_per_page, float(limits.cpu))
        self._lock = threading.Lock()

    def estimator(self) -> Estimator:
        """Return what estimates files with the current rates."""
        embedder = self._index.embedder
        return Estimator(self._load(), self._bounds, embedder.name if embedder is not None else None)

    def learn(self, timeline: Timeline, chunks: int) -> None:
        """Learn from a task that completed."""
        with self._lock:
            self._store.set_value(VALUE, timeline.learn(self._load(), chunks).encode())

    def _load(self) -> Speeds:
        return Speeds.decode(self._store.get_value(VALUE))
