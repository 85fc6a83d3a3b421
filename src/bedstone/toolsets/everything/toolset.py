"""The everything toolset: find a passage in any source, read it, check a quote against it."""

from itertools import accumulate
from typing import TYPE_CHECKING

from bedstone.errors import InvalidInput
from bedstone.toolkit import Links, Toolset, ToolsetContext, tool
from bedstone.toolsets.everything.contract import (
    Cite,
    Fetch,
    FetchedText,
    FoundResult,
    QuoteDifference,
    QuoteVerdict,
    Search,
    SearchResults,
)

if TYPE_CHECKING:  # the engine is imported when it is first needed, not when the server starts
    from collections.abc import Mapping, Sequence

    from bedstone.services.everything.folding import Hit
    from bedstone.services.everything.service import Everything, QuoteCheck, SearchOutcome
    from bedstone.services.service import Handle

MAX_CHARACTERS = {"concise": 4_000, "full": 20_000}
MAX_ANSWER_CHARACTERS = {"concise": 20_000, "full": 60_000}  # of the results as JSON: about 5,000 and 15,000 tokens
MAX_PASSAGE_CHARACTERS = 4_000  # of a result with detail=full
MAX_LISTED_IDS = 5
MAX_QUOTED_CHARACTERS = 1_500
ENOUGH = 3  # good or strong results: with so many, weak ones are left out
NOTHING = "Nothing relevant found. Try other words, or say that the sources do not answer this."
CUT_PASSAGES = f"Passages over {MAX_PASSAGE_CHARACTERS:,} characters are cut: read them with fetch."
ONLY_WEAK = "Only weak matches: they share words with the query, but probably do not answer it."


class EverythingToolset(Toolset):
    """Serves one search over every source that is served beside it."""

    label = "everything"
    title = "Everything"
    server_name = "bedstone"
    instructions = (
        "To answer a question, use these tools in this order:\n"
        "1. search finds passages in all sources at once. Start here.\n"
        "2. fetch reads the text of a result, or the part after it, by id.\n"
        "3. cite checks a quote against its source. Do that before you quote.\n"
        "Name title and page of what you quote, and link its url. If every result is weak, say that nothing was found."
    )

    def __init__(
        self, everything: "Handle[Everything]", *, links: Links | None = None, read_only: bool = False
    ) -> None:
        super().__init__(everything, read_only=read_only)
        self._everything = everything
        self._links = links or Links()

    @classmethod
    def build(cls, context: ToolsetContext) -> "EverythingToolset":
        """Serve the sources of the product."""
        assert context.service is not None
        return cls(context.service, links=context.links, read_only=context.read_only)

    @tool(
        "search",
        "Search everything the team knows: documents, documentation, articles, the knowledge file, Salesforce objects "
        "and fields. Read a result with fetch; check a quote with cite.",
        title="Search everything",
    )
    async def search(self, arguments: Search) -> SearchResults:
        """Return the best passages of all sources in one ranking."""
        from bedstone.services.everything.service import SearchQuery  # noqa: PLC0415 - loads the engine

        everything = await self._everything.open()
        labels = _labels(arguments.source, everything.sources)
        outcome = await everything.search(SearchQuery(arguments.query, labels, limit=arguments.limit))
        shown = [hit for hit in outcome.hits if hit.band != "weak"]
        if len(shown) < ENOUGH:
            shown = list(outcome.hits)
        is_full = arguments.detail == "full"
        every = [self._result(hit, everything.sources[hit.source], is_full=is_full) for hit in shown]
        results = _within(every, MAX_ANSWER_CHARACTERS[arguments.detail])
        is_cut = is_full and any(len(hit.item.text) > MAX_PASSAGE_CHARACTERS for hit in shown[: len(results)])
        notices = [*_failures(outcome, everything.sources), *outcome.notices]
        notices += [CUT_PASSAGES] if is_cut else []
        notices += [_describe_rest(len(every) - len(results), is_full=is_full)] if len(results) < len(every) else []
        return SearchResults(
            results=results,
            message=_advice(shown) if arguments.query.strip() else None,
            weak_results_left_out=len(outcome.hits) - len(shown) or None,
            notice=" ".join(notices) or None,
        )

    @tool(
        "fetch",
        "Read the text of a search result by its id: a page, a section or, without the #part of the id, all of it. "
        "Long texts come in parts: pass next_offset, or next_id for what follows.",
        title="Read a result",
        long=True,
    )
    async def fetch(self, arguments: Fetch) -> FetchedText:
        """Return text from an offset on."""
        fetched = await (await self._everything.open()).fetch(arguments.id)
        end = arguments.offset + MAX_CHARACTERS[arguments.detail]
        if arguments.offset and arguments.offset >= len(fetched.text):
            raise InvalidInput(
                f"offset is behind the end of the text, which has {len(fetched.text)} characters.", parameter="offset"
            )
        facts = {"origin": fetched.origin, **fetched.facts}
        return FetchedText(
            id=fetched.id,
            title=fetched.title,
            text=fetched.text[arguments.offset : end],
            url=self._links.url(fetched.address),
            metadata={key: value for key, value in facts.items() if value},
            offset=arguments.offset,
            total_characters=len(fetched.text),
            next_offset=end if end < len(fetched.text) else None,
            next_id=fetched.next_id,
        )

    @tool(
        "cite",
        "Check a quote before you use it: says whether the source has it, where, and otherwise which passage comes "
        "nearest and what differs.",
        title="Check a quote",
    )
    async def cite(self, arguments: Cite) -> QuoteVerdict:
        """Look for a quote in what an id names."""
        check = await (await self._everything.open()).check_quote(arguments.id, arguments.quote)
        return self._verdict(check)

    def _result(self, hit: "Hit", source: str, *, is_full: bool) -> FoundResult:
        item = hit.item
        start, end = item.span or (None, None)
        return FoundResult(
            id=item.id,
            title=item.title,
            url=self._links.url(item.address),
            source=source,
            origin=item.origin or None,
            location=item.location or None,
            page=item.page,
            anchor=item.anchor,
            start=start,
            end=end,
            score=round(hit.score, 4),
            band=hit.band,
            snippet=item.snippet.text,
            text=item.text[:MAX_PASSAGE_CHARACTERS] if is_full else None,
            matched_by=item.matched_by if is_full else None,
            also=[other.id for other in hit.also[:MAX_LISTED_IDS]] or None,
            copies=[other.id for other in hit.copies[:MAX_LISTED_IDS]] or None,
        )

    def _verdict(self, check: "QuoteCheck") -> QuoteVerdict:
        match, part, fetched = check.match, check.part, check.fetched
        is_there = match.kind != "absent"
        return QuoteVerdict(
            id=part.id if part is not None else fetched.id,
            confirmed=match.is_confirmed,
            match=match.kind,
            distance=round(match.distance, 3),
            passage=match.text[:MAX_QUOTED_CHARACTERS] if is_there else None,
            differences=[QuoteDifference(quote=item.quote, source=item.source) for item in match.differences] or None,
            title=fetched.title,
            url=self._links.url(part.address if part is not None else fetched.address),
            page=part.page if part is not None else None,
            start=match.start if is_there else None,
            end=match.end if is_there else None,
            message=VERDICTS[match.kind],
        )


VERDICTS = {
    "exact": "The source says exactly this.",
    "normalised": "The source says this; only white space, hyphens, markup, case or recognition errors differ.",
    "nearest": "The source does not say this. The passage is the nearest one: quote that instead, or drop the quote.",
    "absent": "The source says nothing like this. Do not quote it from here.",
}


def _labels(source: str | None, sources: "Mapping[str, str]") -> "Sequence[str]":
    """Return the labels of a source by its title or label; all sources without one."""
    if not source:
        return ()
    wanted = source.strip().lower().replace("_", " ")
    found = [label for label, title in sources.items() if wanted in (title.lower(), label.replace("_", " "))]
    if not found:
        known = ", ".join(title.lower() for title in sources.values())
        raise InvalidInput(f"Unknown source {source!r}. Sources: {known}", parameter="source")
    return found


def _advice(hits: "Sequence[Hit]") -> str | None:
    if not hits:
        return NOTHING
    return ONLY_WEAK if hits[0].band == "weak" else None


def _failures(outcome: "SearchOutcome", sources: "Mapping[str, str]") -> list[str]:
    """Return which sources did not answer, and why."""
    return [f"{sources[label]} could not be searched: {reason}" for label, reason in outcome.problems.items()]


def _within(results: "Sequence[FoundResult]", characters: int) -> "list[FoundResult]":
    """Return the first results, as many as fit into an answer, and at least one."""
    sizes = accumulate(len(result.model_dump_json()) for result in results)
    return [
        result
        for number, (result, size) in enumerate(zip(results, sizes, strict=True))
        if not number or size <= characters
    ]


def _describe_rest(count: int, *, is_full: bool) -> str:
    results = "1 more result does" if count == 1 else f"{count} more results do"
    advice = (
        "Narrow the query, choose a source, or use detail=concise"
        if is_full
        else "Narrow the query, or choose a source"
    )
    return f"{results} not fit into this answer. {advice}."
