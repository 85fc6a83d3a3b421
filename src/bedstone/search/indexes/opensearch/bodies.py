"""Every body that is sent to a cluster: values are bound as JSON, never written into a query language."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from zlib import crc32

from bedstone.search.filters import AllOf, AnyOf, Filter, Missing, OneOf
from bedstone.search.indexes.clauses import QUOTATION_SLOP, Clause
from bedstone.search.indexes.fields import STRETCH
from bedstone.search.indexes.languages import ENDINGS, GRAMS, STEMS

if TYPE_CHECKING:
    from bedstone.search.embedder import Vectors
    from bedstone.settings.sections import OpenSearchSettings

Body = dict[str, Any]
Range = tuple[int, int]

BEGINNINGS = "beginnings"  # the stems of compounds again, as they are written
VECTOR = "vector"
# A term of a keyword field has at most 32,766 bytes, a character at most four.
MAX_TERM = 8_000
MAX_CLAUSES = 1_000  # the cluster accepts 1,024
MAX_HITS = 10_000  # that the cluster returns
MAX_FACETS = 10_000
CONNECTIVITY = 32
EXPANSION_ADD = 256
REFRESH_SECONDS = 5  # for a copy that missed a refresh because its node was busy
MAX_SUGGESTIONS = 50
SUGGESTION_EDITS = 2


def index_settings(settings: "OpenSearchSettings") -> Body:
    """Return the settings of an index."""
    return {
        "number_of_shards": settings.shards,
        "number_of_replicas": settings.replicas,
        "refresh_interval": f"{REFRESH_SECONDS}s",
    }


def chunks_body(settings: "OpenSearchSettings") -> Body:
    """Return what the index of chunks is created with: its text is terms already, and is not kept."""
    number: Body = {"type": "long", "index": False}
    name: Body = {"type": "keyword", "ignore_above": MAX_TERM, "doc_values": False}
    text: Body = {"type": "text", "analyzer": "whitespace"}
    return _index_body(
        index_settings(settings),
        {
            "rowid": {"type": "long"},
            "label": number,
            "section": number,
            "all": text,
            "head": text,
            "heading": name,
            "trail": name,
            "kind": name,
            **{field: {**text, "index_options": "freqs"} for field in ("names", GRAMS, STEMS)},
            **{field: {"type": "keyword", "ignore_above": MAX_TERM} for field in (ENDINGS, BEGINNINGS)},
        },
    )


def passages_body(settings: "OpenSearchSettings", dimensions: int) -> Body:
    """Return what the index of passages is created with; scores are exact products of the vectors."""
    number: Body = {"type": "integer", "index": False}
    method: Body = {
        "name": "hnsw",
        "engine": "lucene",
        "space_type": "innerproduct",
        "parameters": {"m": CONNECTIVITY, "ef_construction": EXPANSION_ADD},
    }
    return _index_body(
        {**index_settings(settings), "knn": True},
        {
            "rowid": {"type": "long"},
            "start": number,
            "end": number,
            "batch": {"type": "long"},
            VECTOR: {"type": "knn_vector", "dimension": dimensions, "method": method},
        },
    )


def _index_body(settings: Body, properties: Body) -> Body:
    facets: Body = {"type": "keyword"}
    properties = {**properties, "facets": facets, "facet_keys": {**facets, "doc_values": False}}
    mappings = {"dynamic": "strict", "_source": {"enabled": False}, "properties": properties}
    return {"settings": {"index": settings}, "mappings": mappings}


def state_body(settings: "OpenSearchSettings") -> Body:
    """Return what the index of applied changes is created with; its documents are read by their names."""
    plain = {"number_of_shards": 1, "number_of_replicas": settings.replicas}
    return {"settings": {"index": plain}, "mappings": {"dynamic": False}}


def facet_term(key: str, value: str) -> str:
    """Return a facet as one term; a long one is cut, and told from others by its digest."""
    term = f"{key}={value}"
    return term if len(term) <= MAX_TERM else f"{term[:MAX_TERM]}… {sha256(term.encode()).hexdigest()}"


def keyword_body(clauses: Sequence[Clause], filter: Filter | None, size: int) -> Body:
    """Return the search for the best chunks by their terms; without filter, only scores decide."""
    return {
        "query": with_filter(clauses, filter),
        "size": size,
        "track_total_hits": False,
        **_columns("label", "section"),
    }


def nearest_body(vector: "Vectors", filter: Body | None, count: int, size: int) -> Body:
    """Return the search for the nearest passages: the best `count` of each shard, `size` of all."""
    near: Body = {"vector": vector.tolist(), "k": count, **({"filter": filter} if filter else {})}
    return {
        "query": {"knn": {VECTOR: near}},
        "size": size,
        "track_total_hits": False,
        **_columns("rowid", "start", "end"),
    }


def _columns(*names: str) -> Body:
    return {"_source": False, "stored_fields": "_none_", "docvalue_fields": [*names]}


def with_filter(clauses: Sequence[Clause], filter: Filter | None) -> Body:
    """Return a query for documents with any of the clauses that pass a filter, which does not score."""
    should = [_clause(clause) for clause in clauses[:MAX_CLAUSES]]
    passes = {"filter": [filter_query(filter)]} if filter is not None else {}
    return {"bool": {"should": should, "minimum_should_match": 1, **passes}}


def _clause(clause: Clause) -> Body:
    if len(clause.terms) == 1:
        return {"term": {clause.field: {"value": clause.terms[0], "boost": clause.weight}}}
    phrase: Body = {"query": " ".join(clause.terms), "slop": clause.slop, "boost": clause.weight}
    return {"match_phrase": {clause.field: phrase}}


def filter_query(filter: Filter) -> Body:
    """Return a filter as a query."""
    match filter:
        case OneOf(key, values):
            return {"terms": {"facets": [facet_term(key, value) for value in values]}}
        case Missing(key):
            return {"bool": {"must_not": [{"term": {"facet_keys": key}}]}}
        case AllOf(filters):
            return {"bool": {"filter": [filter_query(item) for item in filters]}}
        case AnyOf(filters):
            should = [filter_query(item) for item in filters]
            return {"bool": {"should": should, "minimum_should_match": 1}} if should else {"match_none": {}}


def passages_of(rowids: Sequence[int], filter: Filter | None = None) -> Body:
    """Return a filter for the passages of some chunks."""
    own: Body = {"terms": {"rowid": [*rowids]}}
    return own if filter is None else {"bool": {"filter": [own, filter_query(filter)]}}


def facets_body(clauses: Sequence[Clause] | None, filter: Filter | None) -> Body:
    """Return the search that counts the chunks with each facet: all, or those with one of the clauses."""
    if clauses is not None:
        query = with_filter(clauses, filter)
    else:
        query = {"bool": {"filter": [filter_query(filter)] if filter is not None else []}}
    query["bool"]["must_not"] = [{"term": {"kind": STRETCH}}]
    counts = {"terms": {"field": "facets", "size": MAX_FACETS}}
    return {"query": query, "size": 0, "track_total_hits": False, "aggs": {"facets": counts}}


def phrase_query(terms: Sequence[str]) -> Body:
    """Return a query for chunks that have terms in this order, with few others between."""
    return {"match_phrase": {"all": {"query": " ".join(terms), "slop": QUOTATION_SLOP}}}


def term_query(field: str, value: str) -> Body:
    """Return a query for chunks with a term."""
    return {"term": {field: {"value": value}}}


def count_body(query: Body, most: int | None = None) -> Body:
    """Return the search that counts what matches, no further than `most`."""
    return {"query": query, "size": 0, "track_total_hits": most or True}


def stretches_query(*, inside: bool) -> Body:
    """Return a query for all stretches, or for all chunks."""
    stretch: Body = {"term": {"kind": STRETCH}}
    return stretch if inside else {"bool": {"must_not": [stretch]}}


def prefix_body(field: str, prefix: str, size: int) -> Body:
    """Return the search for the first terms of a keyword field with a prefix, in order."""
    pattern = "".join(sign if sign.isalnum() else f"\\{sign}" for sign in prefix) + ".*"
    terms = {"terms": {"field": field, "include": pattern, "size": size, "order": {"_key": "asc"}}}
    query: Body = {"prefix": {field: {"value": prefix}}}
    return {"query": query, "size": 0, "track_total_hits": False, "aggs": {"terms": terms}}


def suggestions_body(field: str, word: str, prefix_length: int) -> Body:
    """Return the search for terms that are spelt like a word."""
    options = {
        "field": field,
        "analyzer": "keyword",
        "suggest_mode": "always",
        "prefix_length": prefix_length,
        "max_edits": SUGGESTION_EDITS,
        "min_word_length": prefix_length,
        "size": MAX_SUGGESTIONS,
    }
    return {"size": 0, "track_total_hits": False, "suggest": {"near": {"text": word, "term": options}}}


def frequencies_body(index: str, terms: Mapping[str, Sequence[str]], routing: str) -> Body:
    """Return the request for the number of documents with terms of fields, on the shard of a routing."""
    return {
        "_index": index,
        "doc": {field: " ".join(dict.fromkeys(values)) for field, values in terms.items()},
        "routing": routing,
        "term_statistics": True,
        "field_statistics": False,
        "positions": False,
        "offsets": False,
        "payloads": False,
    }


def ranges_query(ranges: Iterable[Range], before: int | None = None) -> Body:
    """Return a query for the chunks in any of some ranges, or for their passages written before a batch."""
    should = [{"range": {"rowid": {"gte": first, "lte": last}}} for first, last in ranges]
    older = [{"range": {"batch": {"lt": before}}}] if before is not None else []
    return {"bool": {"should": should, "minimum_should_match": 1, "filter": older}}


def search_options(text: str, shards: int) -> Body:
    """Return the options of a search: the same copies answer the same text, so that pages fit together.

    Statistics of terms come from all shards, as if there were one; an answer of a part of them is an error.
    """
    options: Body = {"preference": f"query-{crc32(text.encode())}", "allow_partial_search_results": False}
    return {**options, "search_type": "dfs_query_then_fetch"} if shards > 1 else options
