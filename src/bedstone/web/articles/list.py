"""Articles: the list, searched or by title, narrowed by category and language, from the mirror or the org."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import BedstoneError
from bedstone.services.service import SyncFacts
from bedstone.web.articles.article import show_article
from bedstone.web.articles.languages import language_name
from bedstone.web.formatting import highlight
from bedstone.web.frame import Pages
from bedstone.web.paging import Pager
from bedstone.web.wording import for_people

if TYPE_CHECKING:
    from bedstone.search.relevance import Band
    from bedstone.services.articles.article import Article
    from bedstone.services.articles.categories import Category, CategoryGroup
    from bedstone.services.articles.contents import MirrorContents
    from bedstone.services.articles.found import ArticleNaming
    from bedstone.services.articles.service import ArticleService
    from bedstone.services.service import Handle

ADDRESS = "/salesforce/articles"
ROWS_PER_PAGE = 20
MAX_FOUND = 100
MIN_SCORE = 0.05  # as in the search over everything
MAX_QUERY_CHARACTERS = 500
MAX_CHIPS = 12  # of a group; with more, only the top ones are shown, and what is below the chosen one
PATH_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
MAX_SEGMENTS = 4  # languages side by side


@dataclass(frozen=True)
class ListParams:
    """What the address asks for. `source` is `live` or `mirror`; `title` must occur in the titles."""

    query: str = ""
    title: str = ""
    language: str = ""
    source: str = ""
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: Request) -> "ListParams":
        """Read an address."""
        given = request.query_params
        query, title = (given.get(name, "").strip()[:MAX_QUERY_CHARACTERS] for name in ("q", "title"))
        source = given.get("from", "")
        chosen = {key.partition(".")[0]: key for key in given.getlist("category") if key}  # one of each group
        return cls(
            query,
            title,
            given.get("language", ""),
            source if source in ("live", "mirror") else "",
            tuple(chosen.values()),
        )

    def address(self, **changes: Any) -> str:
        """Return the address of this list with changes."""
        params = replace(self, **changes)
        given = [("q", params.query), ("title", params.title), ("language", params.language), ("from", params.source)]
        given += [("category", key) for key in params.categories]
        text = urlencode([(key, value) for key, value in given if value])
        return f"{ADDRESS}?{text}" if text else ADDRESS

    def choose(self, group: str, key: str = "") -> str:
        """Return the address with another category of a group, or with none."""
        others = [other for other in self.categories if not other.startswith(f"{group}.")]
        return self.address(categories=(*others, *([key] if key else [])))


@dataclass(frozen=True)
class Row:
    """An article as the list shows it; `band` and `score` only if it was searched for in the mirror."""

    article: "Article"
    address: str
    place: str
    title: Markup
    text: Markup
    categories: str
    languages: Sequence[tuple[str, str]]  # other translations: code and name
    band: "Band | None" = None
    score: float = 0.0


@dataclass(frozen=True)
class Chip:
    """A category to narrow the list by; `depth` is how far down the tree it is."""

    label: str
    count: int
    address: str
    is_current: bool
    depth: int = 0
    path: str = ""


@dataclass(frozen=True)
class _Listed:
    """The ids of all articles of a list in order, and how to make rows of some of them."""

    ids: Sequence[str]
    articles: Mapping[str, "Article"]
    hits: Mapping[str, Any]
    problem: str = ""
    is_minimum: bool = False


def article_routes(pages: Pages) -> list[BaseRoute]:
    """Return the list of articles and the page of one."""

    async def show_one(request: Request) -> Response:
        return await show_article(pages, request)

    return [Route(ADDRESS, _ArticleList(pages).show), Route(f"{ADDRESS}/{{name}}", show_one)]


class _ArticleList:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._service: Handle[ArticleService] = pages.services["salesforce_knowledge"]

    async def show(self, request: Request) -> Response:
        params = ListParams.of(request)
        try:
            service = await self._service.open()
            context = await self._context(request, params, service)
        except BedstoneError as error:
            context = {"problem": for_people(error.message), "params": params}
        return self._pages.render(request, "articles.html", page="articles", **context)

    async def _context(self, request: Request, params: ListParams, service: "ArticleService") -> dict[str, Any]:
        sync: SyncFacts = (await self._service.run(lambda articles: articles.syncs()))[0]
        sync = replace(sync, problem=for_people(sync.problem))
        has_mirror = sync.last_at is not None
        contents = await self._service.run(lambda articles: articles.mirror.contents()) if has_mirror else None
        source = params.source or ("mirror" if has_mirror and service.source != "live" else "live")
        if not has_mirror and service.source == "mirror":
            return {"params": params, "sync": sync, "needs_mirror": True}
        languages = contents.languages if contents is not None else []
        language = params.language if params.language in languages or not languages else languages[0]
        wanted = replace(params, source=source, language=language)
        listed = await self._list(wanted, service, contents)
        groups = contents.categories if contents is not None else []
        shown = _narrow(listed.ids, wanted.categories, groups)
        pager = Pager.of(request, len(shown), ROWS_PER_PAGE)
        rows = await self._rows(wanted, service, contents, listed, pager.cut(shown))
        newer, problem = await service.compare_with_org()
        return {
            "params": wanted,
            "given": params,
            "rows": rows,
            "pages": pager,
            "listed": listed,
            "chips": _chips(params, groups, listed.ids),
            "languages": [(code, language_name(code), params.address(language=code)) for code in languages],
            "max_segments": MAX_SEGMENTS,
            "contents": contents,
            "sync": sync,
            "first_choice": service.source,
            "org": service.org,
            "newer": newer,
            "org_answers": newer is not None or (source == "live" and not listed.problem),
            "org_problem": for_people(problem or ""),
            "sources": [(key, title, params.address(source=key)) for key, title in _SOURCES] if has_mirror else [],
        }

    async def _list(self, params: ListParams, service: "ArticleService", contents: "MirrorContents | None") -> _Listed:
        """Return the articles of a language: what was searched for, best first, or all by title."""
        from bedstone.services.articles.article import ArticleQuery  # noqa: PLC0415 - with the engine

        if params.source == "live":
            query = ArticleQuery(params.query, params.language or None, MAX_FOUND)
            try:
                page = await service.ask_org(query)
            except BedstoneError as error:
                return _Listed((), {}, {}, for_people(error.message))
            articles = _with_title(page.articles, params.title)
            is_cut = page.is_minimum or (bool(params.query) and page.total > MAX_FOUND)
            return _Listed(list(articles), articles, {}, is_minimum=is_cut)
        assert contents is not None
        if not params.query:
            wanted = (item for item in contents.articles if item.language in (params.language, None))
            articles = _with_title(wanted, params.title)
            return _Listed(list(articles), articles, {})
        query = ArticleQuery(params.query, params.language, MAX_FOUND)
        found = await self._service.run(lambda service: service.mirror.rank(query, MIN_SCORE))
        hits = {hit.head.document_id: hit for hit in found}
        articles = _with_title((contents.by_id[key] for key in hits if key in contents.by_id), params.title)
        return _Listed(list(articles), articles, hits, is_minimum=len(found) == MAX_FOUND)

    async def _rows(
        self,
        params: ListParams,
        service: "ArticleService",
        contents: "MirrorContents | None",
        listed: _Listed,
        ids: Sequence[str],
    ) -> list[Row]:
        hits = [listed.hits[record] for record in ids if record in listed.hits]
        if hits:
            articles = await self._service.run(lambda service: service.mirror.show_passages(hits, params.query))
        else:
            articles = [listed.articles[record] for record in ids]
        naming = await service.naming()
        return [_row(article, params.query, naming, contents) for article in articles]


_SOURCES = (("mirror", "Mirror"), ("live", "Live"))


def _row(article: "Article", query: str, naming: "ArticleNaming", contents: "MirrorContents | None") -> Row:
    from bedstone.search.matching import Matcher  # noqa: PLC0415 - with the engine
    from bedstone.search.relevance import band_of  # noqa: PLC0415
    from bedstone.services.articles.found import describe_place, mark_snippet  # noqa: PLC0415

    matcher = Matcher(query) if query else None

    def mark(text: str) -> Markup:
        return highlight(mark_snippet(text, matcher)) if matcher else escape(text)

    others = contents.translations(article.article_id) if contents is not None else ()
    names = [
        (item.language, language_name(item.language))
        for item in others
        if item.language not in (None, article.language)
    ]
    labels = contents.categories_of(article) if contents is not None else []
    return Row(
        article,
        naming.address(article, query),
        describe_place(article),
        mark(article.title),
        mark((query and article.snippet) or article.summary or ""),
        ", ".join(category.label for category in labels),
        names,
        band_of(article.score) if article.score is not None else None,
        article.score or 0.0,
    )


def _with_title(articles: "Iterable[Article]", title: str) -> "dict[str, Article]":
    return {item.id: item for item in articles if title.lower() in item.title.lower()}


def _narrow(ids: Iterable[str], keys: Iterable[str], groups: "Sequence[CategoryGroup]") -> list[str]:
    """Return the articles that are in all of some categories; unknown categories are ignored."""
    chosen = [way[-1].articles for key in keys for group in groups if (way := group.find(key))]
    return [record for record in ids if all(record in articles for articles in chosen)]


def _chips(params: ListParams, groups: "Sequence[CategoryGroup]", ids: Sequence[str]) -> list[tuple[str, list[Chip]]]:
    """Return the categories of each group, with how many of some articles are in each."""
    rows = []
    for group in groups:
        others = [key for key in params.categories if not key.startswith(f"{group.name}.")]
        inside = set(_narrow(ids, others, groups))
        chosen = next((way for key in params.categories if (way := group.find(key))), ())
        chips = [
            Chip(
                category.label,
                len(category.articles & inside),
                params.choose(group.name, category.key),
                category in chosen[-1:],
                len(above),
                PATH_SEPARATOR.join(item.label for item in (*above, category)),
            )
            for above, category in _visible(group.categories, inside, chosen)
        ]
        if chips:
            rows.append((group.label, [Chip("All", len(inside), params.choose(group.name), not chosen), *chips]))
    return rows


def _visible(
    categories: "Sequence[Category]", inside: Set[str], chosen: "tuple[Category, ...]"
) -> "list[tuple[tuple[Category, ...], Category]]":
    """Return the categories to show, each with those above it: all if they are few, else only around the chosen one."""

    def walk(
        items: "Sequence[Category]", above: "tuple[Category, ...]"
    ) -> "Iterator[tuple[tuple[Category, ...], Category]]":
        for item in items:
            if item in chosen or not item.articles.isdisjoint(inside):
                yield above, item
                yield from walk(item.children, (*above, item))

    every = list(walk(categories, ()))
    if len(every) <= MAX_CHIPS:
        return every
    return [(above, item) for above, item in every if not above or above[-1] in chosen]
