"""A search index that knows synonyms: a query for a lamp also finds a lantern."""

from dataclasses import replace

from bedstone.search.hits import Ranking
from bedstone.search.index import IndexQuery
from bedstone.search.indexes.memory import MemoryIndex

SYNONYMS = {"lamp": "lantern", "lantern": "lamp", "boat": "ship", "ship": "boat"}


class SynonymIndex(MemoryIndex):
    """Adds synonyms to the query. The index is built in memory from the store, so there is nothing to save."""

    def search(self, query: IndexQuery) -> Ranking:
        """Return the best candidates for the query and its synonyms."""
        return super().search(replace(query, text=_expand(query.text)))


def _expand(text: str) -> str:
    synonyms = [SYNONYMS[word] for word in text.lower().split() if word in SYNONYMS]
    return " ".join([text, *synonyms])
