"""The retrieval pipeline: normalize, plan, collect, promote, cut, group, score, present."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, TypeVar

from bedstone.records import ChunkHead, StoredChunk
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.filters import Filter
from bedstone.search.fusion import Coverage, promote_documents
from bedstone.search.hits import Candidate, Hit, Mode, Ranking, SearchRequest, SearchResponse, Snippet
from bedstone.search.index import IndexQuery, SearchIndex, Weights
from bedstone.search.language import KEYWORDS_ONLY, KNOWN_LANGUAGE_WEIGHT, OTHER_SCRIPT_WEIGHT, semantic_weight
from bedstone.search.matching import Matcher
from bedstone.search.places import matched_place
from bedstone.search.question import QuestionCoverage
from bedstone.search.relevance import Kind, QueryTerms, make_non_increasing, nearness, relevance
from bedstone.search.snippets import snippet
from bedstone.search.terms import UNSPACED, normalize_query, split_camel
from bedstone.store.engine import Store

if TYPE_CHECKING:
    from bedstone.search.embedder import Vectors
    from bedstone.settings import CorpusTuning

# Candidates of each side; 50 cost 0.005 nDCG. Deeper pages look further, but earlier candidates keep their place.
DEPTHS = (100, 1_000, 5_000)
MAX_KEPT_MATCHERS = 32
MAX_KEPT_HEADS = 4_000  # half a kilobyte each
MAX_KEPT_TEXTS = 2_000  # one or two kilobytes each

Record = TypeVar("Record")
GroupKey = Callable[[ChunkHead, SearchRequest], Hashable]
IsVariant = Callable[[ChunkHead, ChunkHead, SearchRequest], bool]


def breadcrumb_of(head: ChunkHead) -> Iterable[str]:
    """Return the headings above a chunk, and its own."""
    return head.breadcrumb


@dataclass(frozen=True)
class Profile:
    """What differs between the kinds of content that are searched."""

    weights: Weights = field(default_factory=Weights)
    promotes_documents: bool = False  # a question is answered by whole documents
    # With it, the documents that rank lower for a question, unless `asks_for_secondary` says that it is about them.
    secondary_documents: Callable[[], Collection[str]] = tuple
    asks_for_secondary: Callable[[str], bool] = bool
    windows: tuple[int, ...] = ()  # numbers of candidates to look at, so that every page is cut from the same list
    group_key: GroupKey | None = None  # of the chunks with the same key, only the best is a hit
    is_variant: "IsVariant | None" = None  # of two chunks with the same key; without it, they always are
    preferred: "Callable[[ChunkHead, SearchRequest], ChunkHead] | None" = None  # the variant of a chunk to show
    skips_unrelated: bool = False  # a candidate without a matching term that is not near in meaning is not a hit
    counts_all: bool = False  # every candidate of the last window is counted, not only those of the page
    context_of: Callable[[ChunkHead], Iterable[str]] = breadcrumb_of  # text to score in addition to the chunk's own
    has_snippets: bool = True  # otherwise hits have the whole chunk
    has_documents: bool = False  # hits have their documents too, whose titles are scored
    is_static: bool = False  # the store never changes, so what was read of it can be kept


def tune_profile(profile: Profile, tuning: "CorpusTuning | None") -> Profile:
    """Return a profile with the settings of one corpus."""
    if tuning is None:
        return profile
    weights, promotes = profile.weights, profile.promotes_documents
    if tuning.semantic_share is not None:
        weights = replace(weights, semantic=tuning.semantic_share / (1 - tuning.semantic_share))
    if tuning.proximity is not None:
        weights = replace(weights, proximity=tuning.proximity)
    if tuning.promote_documents is not None and profile.is_static:  # which chunks a document has is read once
        promotes = tuning.promote_documents
    return replace(profile, weights=weights, promotes_documents=promotes)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask the index. `is_question`: not a quotation, so vectors and documents count.

    `kind` and `language_share` (how well the model knows the language) decide how hits are scored.
    """

    text: str
    vector: "Vectors | None"
    semantic_weight: float
    is_question: bool
    weights: Weights = field(default_factory=Weights)
    kind: Kind = "keyword"
    language_share: float = 1.0


@dataclass(frozen=True, slots=True)
class Selection:
    """The first of each group of candidates, in order; how many groups match, and whether every group was seen.

    `variants` are the others of a group, by the number of its first, as far as they were seen.
    """

    plan: Plan
    ranking: Ranking
    candidates: list[Candidate]
    matched: int
    is_complete: bool
    variants: Mapping[int, Sequence[ChunkHead]] = field(default_factory=dict)


@dataclass(slots=True)
class Group:
    """A candidate, and those below it that are variants of it."""

    first: Candidate
    head: ChunkHead
    others: list[ChunkHead] = field(default_factory=list)


class Retriever:
    """Searches one store through its index; falls back to keyword search while the embedder fails."""

    def __init__(
        self, store: Store, index: SearchIndex, embedding: QueryEmbedder, profile: Profile | None = None
    ) -> None:
        self.index = index
        self._store = store
        self._embedding = embedding
        self._profile = profile or Profile()
        is_static = self._profile.is_static
        self._read_heads = _Kept(store.chunk_heads, MAX_KEPT_HEADS) if is_static else store.chunk_heads
        self._read_texts = _Kept(store.plain_texts, MAX_KEPT_TEXTS) if is_static else store.plain_texts
        self._matcher_of = lru_cache(maxsize=MAX_KEPT_MATCHERS)(_make_matcher)  # two stages need it

    @property
    def profile(self) -> Profile:
        """What differs from other kinds of content."""
        return self._profile

    @property
    def store(self) -> Store:
        """The store that is searched."""
        return self._store

    def with_profile(self, profile: Profile) -> "Retriever":
        """Return a retriever over the same content with another profile."""
        return Retriever(self._store, self.index, self._embedding, profile)

    def search(self, request: SearchRequest) -> SearchResponse:
        """Return a page of the best hits."""
        end = request.offset + request.limit
        selection = self.select(request, end + 1)
        hits = self._present(request, *self._prefer(request, selection, selection.candidates[request.offset : end]))
        return SearchResponse(
            hits=tuple(hits),
            has_more=len(selection.candidates) > end,
            matched=selection.matched,
            is_lower_bound=not selection.is_complete,
            signals=selection.ranking.signals,
        )

    def count_facets(self, query: str | None, filter: Filter | None) -> Mapping[str, Mapping[str, int]]:
        """Count the chunks with each value of each facet, among those with a term of the query."""
        return self.index.count_facets(query, filter)

    def language_notice(self, query: str) -> str | None:
        """Return why semantic search does not take part in a query: the model cannot read its script."""
        if query.isascii():
            return None
        embedder = self._embedding.embedder if self.index.has_vectors else None
        if embedder is None or not embedder.is_semantic:
            return None
        weight = semantic_weight(normalize_query(query), self._embedding.languages)
        return KEYWORDS_ONLY if weight == OTHER_SCRIPT_WEIGHT else None

    def select(self, request: SearchRequest, count: int) -> Selection:
        """Run the stages before scoring: return the first `count` candidates, one of each group."""
        text = normalize_query(request.query)
        plan = plan_query(text, request.mode, self.index, self._embedding, self._profile.weights)
        if self._profile.group_key is not None:
            return self._select_groups(plan, request, self._profile.group_key, count)
        ranking = self._collect(plan, request.filter, count)
        return Selection(plan, ranking, ranking.candidates, len(ranking.candidates), len(ranking.candidates) < count)

    def heads(self, candidates: Iterable[Candidate]) -> Mapping[int, ChunkHead]:
        """Return the heads of candidates, and perhaps others; deleted ones are missing."""
        return self._read_heads([candidate.rowid for candidate in candidates])

    def _collect(self, plan: Plan, filter: Filter | None, limit: int) -> Ranking:
        promotes = self._profile.promotes_documents and plan.is_question
        document_of = partial(bisect_right, self._first_chunks) if promotes else None
        demoted = self._secondary if document_of and not self._profile.asks_for_secondary(plan.text) else ()
        coverage = self._coverage(plan)
        ranking = collect(plan, filter, limit, self.index, document_of, demoted=demoted, coverage=coverage)
        return replace(ranking, candidates=[]) if is_unrelated(ranking, self._embedding.min_similarity) else ranking

    def _coverage(self, plan: Plan) -> Coverage | None:
        """Return what tells how much of a question chunks have; None for other queries and languages."""
        if not plan.is_question or plan.vector is None or plan.language_share < 1:
            return None

        def read(rowids: Sequence[int]) -> Iterator[tuple[str, str]]:
            heads, texts = self._read_heads(rowids), self._read_texts(rowids)
            for rowid in rowids:
                if rowid in heads and rowid in texts:
                    yield texts[rowid], "\n".join(self._profile.context_of(heads[rowid]))

        index = self.index
        return QuestionCoverage(self._matcher(plan.text), index.chunk_count, index.document_frequency, read)

    def _matcher(self, text: str) -> Matcher:
        languages = getattr(self.index, "languages", None)  # an index of another package may not tell them
        return self._matcher_of(text, tuple(languages.items()) if languages else ())

    def _select_groups(self, plan: Plan, request: SearchRequest, group_key: GroupKey, count: int) -> Selection:
        windows, counts_all = self._profile.windows, self._profile.counts_all
        groups: list[Group] = []
        by_key: dict[Hashable, list[Group]] = {}
        matched: set[Hashable] = set()
        start = 0
        for window in windows:
            ranking = self._collect(plan, request.filter, window)
            candidates = ranking.candidates
            is_last = len(candidates) < window or window == windows[-1]
            settled = len(candidates) if is_last else count_settled(candidates)
            step = window if counts_all else count
            for candidate, head in break_ties(candidates[start:settled], step, self.heads):
                if self._profile.skips_unrelated and not candidate.is_match(self._embedding.min_similarity):
                    continue
                key = group_key(head, request)
                alike = by_key.setdefault(key, [])
                if group := self._find_group(alike, head, request):
                    group.others.append(head)
                else:
                    groups.append(Group(candidate, head))
                    alike.append(groups[-1])
                if counts_all and candidate.is_match(self._embedding.min_similarity):
                    matched.add(key)
                elif len(groups) == count and not counts_all:
                    return self._to_selection(plan, ranking, groups, count, is_complete=False)
            start = max(start, settled)
            if is_last:
                break
        count = len(matched if counts_all else groups)
        return self._to_selection(plan, ranking, groups, count, is_complete=len(candidates) < window)

    def _find_group(self, alike: Sequence[Group], head: ChunkHead, request: SearchRequest) -> Group | None:
        if self._profile.is_variant is None:
            return alike[0] if alike else None
        return next((group for group in alike if self._profile.is_variant(group.head, head, request)), None)

    @staticmethod
    def _to_selection(
        plan: Plan, ranking: Ranking, groups: Sequence[Group], count: int, *, is_complete: bool
    ) -> Selection:
        variants = {group.first.rowid: group.others for group in groups if group.others}
        return Selection(plan, ranking, [group.first for group in groups], count, is_complete, variants)

    def _prefer(
        self, request: SearchRequest, selection: Selection, page: Sequence[Candidate]
    ) -> tuple[Selection, list[Candidate]]:
        """Replace the candidates of a page by the variants to show."""
        if self._profile.preferred is None:
            return selection, list(page)
        heads, variants, shown = self.heads(page), dict(selection.variants), []
        taken = {candidate.rowid for candidate in page}
        for candidate in page:
            head = heads.get(candidate.rowid)
            best = self._profile.preferred(head, request) if head else None
            if head is None or best is None or best.rowid in taken:
                shown.append(candidate)
                continue
            taken.add(best.rowid)
            others = [head, *(item for item in variants.pop(head.rowid, ()) if item.rowid != best.rowid)]
            variants[best.rowid] = others
            shown.append(candidate._replace(rowid=best.rowid))
        return replace(selection, variants=variants), shown

    def _present(self, request: SearchRequest, selection: Selection, page: Sequence[Candidate]) -> list[Hit]:
        """Score the candidates of a page, and add what is shown of them."""
        matcher, plan = self._matcher(normalize_query(request.query)), selection.plan
        query = QueryTerms(matcher.terms, self.index.chunk_count, self.index.document_frequency, matcher.characters)
        min_similarity = self._embedding.min_similarity
        drafts, scores = [], []
        read = list(self._read(page))
        names = {head.document_id for _, head, _, _ in read} if self._profile.has_documents else ()
        documents = self._store.documents_by_id(names) if names else {}
        for candidate, head, chunk, plain in read:
            document = documents.get(head.document_id)
            if document is None and self._profile.has_documents:  # deleted in the meantime
                continue
            title = document.title if document is not None else ""
            context = "\n".join(["", title, *self._profile.context_of(head)])
            seen = found = matcher.find(plain + context)
            length = len(plain)
            if not found and candidate.keyword_score is not None:  # the index knows the parts of identifiers too
                parts = split_camel(plain)
                seen, length = matcher.find(parts + split_camel(context)), len(parts)
            evidence = query.weigh(seen, length, nearness(candidate.cosine, min_similarity))
            scores.append(relevance(query, evidence, plan.kind, plan.language_share))
            drafts.append((candidate, head, chunk, plain, document, found))
        hits = []
        for (candidate, head, chunk, plain, document, found), score in zip(
            drafts, make_non_increasing(scores), strict=True
        ):
            if score < request.min_score:
                continue
            shown, place = Snippet(""), None
            nearest = selection.ranking.passage(candidate.rowid)
            if self._profile.has_snippets:
                shown = snippet(plain, matcher, nearest, found)
            else:
                place = matched_place(head, len(plain), found, query.weights, nearest)
            variants = tuple([other.id for other in selection.variants.get(candidate.rowid, ())])
            matched_by = candidate.matched_by(min_similarity)
            hits.append(Hit(head, round(score, 4), matched_by, shown, plain, chunk, document, place, variants))
        return hits

    def _read(self, page: Sequence[Candidate]) -> Iterator[tuple[Candidate, ChunkHead, StoredChunk | None, str]]:
        """Yield candidates with what the page needs of them; those deleted in the meantime are left out."""
        rowids = [candidate.rowid for candidate in page]
        if not self._profile.has_snippets:
            chunks = self._store.chunks(rowids)
            for candidate in page:
                if stored := chunks.get(candidate.rowid):
                    yield candidate, stored.head, stored, stored.plain
            return
        heads, texts = self.heads(page), self._read_texts(rowids)
        for candidate in page:
            if candidate.rowid in heads and candidate.rowid in texts:
                yield candidate, heads[candidate.rowid], None, texts[candidate.rowid]

    @cached_property
    def _secondary(self) -> Collection[int]:
        """The secondary documents, each by the number of first chunks up to its own."""
        identities = self._profile.secondary_documents()
        if not identities:
            return frozenset()
        heads = self._store.chunk_heads(self._first_chunks)
        return frozenset(
            bisect_right(self._first_chunks, rowid) for rowid in heads if heads[rowid].document_id in identities
        )

    @cached_property
    def _first_chunks(self) -> Sequence[int]:
        return array("q", self._store.first_chunks())


class _Kept(Generic[Record]):
    """Reads records of a store that never changes, and keeps some of them."""

    def __init__(self, read: Callable[[Sequence[int]], Mapping[int, Record]], most: int) -> None:
        self._read, self._most = read, most
        self._records: dict[int, Record] = {}

    def __call__(self, rowids: Sequence[int]) -> Mapping[int, Record]:
        """Return the records with these numbers, and perhaps others."""
        kept = self._records
        if missing := [rowid for rowid in rowids if rowid not in kept]:
            if len(kept) > self._most:  # another thread may still read the old ones
                kept = self._records = {rowid: kept[rowid] for rowid in rowids if rowid in kept}
            kept.update(self._read(missing))
        return kept


def _make_matcher(text: str, languages: Sequence[tuple[str, float]]) -> Matcher:
    return Matcher(text, dict(languages))


def plan_query(text: str, mode: Mode, index: SearchIndex, embedding: QueryEmbedder, weights: Weights) -> Plan:
    """Decide whether a query is a quotation, embed it if it is not, and weigh its vector."""
    is_quotation = mode != "semantic" and index.is_quotation(text)
    is_question = mode == "hybrid" and not is_quotation  # a quotation targets one chunk
    wants_vector = (mode == "semantic" or is_question) and index.has_vectors
    vector = embedding.embed(text) if wants_vector else None
    share = semantic_weight(text, embedding.languages) if vector is not None else 0.0
    language_share = share / KNOWN_LANGUAGE_WEIGHT
    kind = _kind_of(text, mode, is_quotation=is_quotation, is_near=share > 0)
    weights = replace(weights, in_stretches=not is_quotation)
    if mode == "semantic":
        return Plan("", vector, 1.0, is_question, weights, kind, language_share)
    share = share * weights.semantic / (share * weights.semantic + 1 - share)
    return Plan(text, vector, share, is_question, weights, kind, language_share)


def _kind_of(text: str, mode: Mode, *, is_quotation: bool, is_near: bool) -> Kind:
    """Return how to score the hits of a query; `is_near`: a vector of a model that knows the language takes part."""
    if is_near:
        return "semantic" if mode == "semantic" else "hybrid"
    if UNSPACED.search(text):
        return "unspaced"
    return "quotation" if is_quotation else "keyword"


def collect(
    plan: Plan,
    filter: Filter | None,
    limit: int,
    index: SearchIndex,
    document_of: Callable[[int], int] | None = None,
    *,
    coverage: Coverage | None = None,
    demoted: Collection[int] = (),
) -> Ranking:
    """Ask the index for candidates, deeper while there are too few; with `document_of`, documents are promoted."""
    promoted = DEPTHS[0] if document_of else 0
    candidates: dict[int, Candidate] = {}
    for depth in DEPTHS:
        query = IndexQuery(
            text=plan.text,
            vector=plan.vector,
            semantic_weight=plan.semantic_weight,
            filter=filter,
            limit=max(limit, promoted) + len(candidates),
            depth=depth,
            weights=plan.weights,
            coverage=coverage,
        )
        ranking = index.search(query)
        best = ranking.candidates
        if document_of and not candidates:
            best = [*promote_documents(best[:promoted], document_of, demoted), *best[promoted:]]
        for candidate in best:
            candidates.setdefault(candidate.rowid, candidate)
        if len(candidates) >= limit or ranking.considered < depth:
            break
    return replace(ranking, candidates=list(candidates.values())[:limit])


def is_unrelated(ranking: Ranking, min_similarity: float) -> bool:
    """Return whether no term matches and nothing is near in meaning: the neighbours of nonsense answer nothing."""
    if "keyword" in ranking.signals:
        return False
    return max((candidate.cosine or 0.0 for candidate in ranking.candidates), default=0.0) < min_similarity


def count_settled(candidates: Sequence[Candidate]) -> int:
    """Return how many candidates keep their place in a longer list: those that tie with the last may not."""
    return next(at for at, candidate in enumerate(candidates) if candidate.score == candidates[-1].score)


def break_ties(
    candidates: Sequence[Candidate], step: int, read_heads: Callable[[Sequence[Candidate]], Mapping[int, ChunkHead]]
) -> Iterator[tuple[Candidate, ChunkHead]]:
    """Yield candidates with their heads, `step` read at a time; those with the same score in the order of their ids.

    Their rowids would be in another order after a file changes.
    """
    start = 0
    while start < len(candidates):
        end = min(start + step, len(candidates))
        while end < len(candidates) and candidates[end].score == candidates[end - 1].score:
            end += 1
        heads = read_heads(candidates[start:end])
        for _, tied in groupby(candidates[start:end], key=attrgetter("score")):
            existing = [(candidate, heads[candidate.rowid]) for candidate in tied if candidate.rowid in heads]
            yield from sorted(existing, key=_chunk_id) if len(existing) > 1 else existing
        start = end


def _chunk_id(pair: tuple[Candidate, ChunkHead]) -> str:
    return pair[1].id
