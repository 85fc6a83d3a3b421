"""The page of an article: rich text with the cited passage, its translations, and what an agent gets."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from bedstone.errors import NotFound
from bedstone.toolkit import Reply
from bedstone.web.articles.languages import html_language, language_name
from bedstone.web.formatting import highlight
from bedstone.web.frame import Pages, estimate_tokens, pretty_json
from bedstone.web.wording import for_people

if TYPE_CHECKING:
    from bedstone.search.matching import Matcher
    from bedstone.services.articles.article import Article
    from bedstone.services.articles.categories import Category
    from bedstone.services.articles.contents import MirrorContents
    from bedstone.services.articles.found import ArticleNaming
    from bedstone.services.articles.service import ArticleService

ADDRESS = "/salesforce/articles"
URI_PREFIX = "salesforce-knowledge://article/"
MAX_QUERY_CHARACTERS = 500
MAX_RELATED = 4
MAX_DIGITS = 9
FIRST_HEADING = re.compile(r"\s*<h([1-6])\b[^>]*>(.*?)</h\1\s*>", re.IGNORECASE | re.DOTALL)
TAGS = re.compile(r"<[^<>]*>")
LIST_MARK = re.compile(r"^\s*(?:\d+\.|-)\s+")
PARAGRAPHS = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Cited:
    """What the address asks to highlight: words of a query, and a passage by its range in the text."""

    query: str
    start: int | None
    end: int | None

    @classmethod
    def of(cls, request: Request) -> "Cited":
        """Read an address; an invalid range is ignored."""
        given = request.query_params
        start, end = (_parse(given.get(name, "")) for name in ("start", "end"))
        return cls(given.get("q", "").strip()[:MAX_QUERY_CHARACTERS], start, end)

    def passage(self, text: str) -> str:
        """Return the passage of a text; empty without one."""
        if self.start is None or self.end is None or not self.start < self.end <= len(text):
            return ""
        return text[self.start : self.end]


@dataclass(frozen=True)
class Related:
    """Further articles of a category."""

    label: str
    address: str  # of all of them
    count: int
    articles: "Sequence[tuple[Article, str]]"  # with the address of each


async def show_article(pages: Pages, request: Request) -> Response:
    """Show an article by its URL name or an id."""
    service: ArticleService = await pages.services["salesforce_knowledge"].open()
    name, language = request.path_params["name"], request.query_params.get("language", "")
    _, problem = await service.compare_with_org()  # an article that is newer in the org is read from there
    try:
        article, mirrored_at = await (service.read(name, language) if language else service.read(name))
    except NotFound as error:
        return await _show_missing(pages, request, service, error)
    cited = Cited.of(request)
    naming = await service.naming()
    contents = await pages.services["salesforce_knowledge"].run(_read_contents)
    view = request.query_params.get("view", "")
    from_mirror = mirrored_at if service.source == "mirror" or problem else None
    answer = _search_line(article, naming) if view == "line" else _agent_answer(article, from_mirror)
    return pages.render(
        request,
        "article.html",
        page="articles",
        article=article,
        html_language=html_language(article.language),
        content=render_article(article, cited, _make_link(naming, contents)),
        mirrored_at=mirrored_at,
        is_mirrored=contents is not None and article.id in contents.by_id,
        languages=_languages(article, naming, contents),
        categories=_categories(article, contents),
        related=_find_related(article, naming, contents),
        view=view,
        views=[("", "Text", _with(request, view="")), ("line", "Search line", _with(request, view="line"))],
        answer=pretty_json(answer),
        tokens=estimate_tokens(Reply(answer).text),
        item_id=naming.item_id(article),
        uri=f"{URI_PREFIX}{quote(article.url_name)}" if article.url_name else "",
        salesforce_url=_salesforce_url(naming, article),
        org=service.org,
    )


def _read_contents(service: "ArticleService") -> "MirrorContents | None":
    return service.mirror.contents() if service.mirror.mirrored_at is not None else None


async def _show_missing(pages: Pages, request: Request, service: "ArticleService", error: NotFound) -> Response:
    """Say which article is missing, and offer those with similar names."""
    asked = request.path_params["name"]
    contents = await pages.services["salesforce_knowledge"].run(_read_contents)
    near = []
    for name in error.details.get("suggestions", ()):
        known = contents.find_named(name) if contents is not None else ()
        near.append((known[0].title if known else name, f"{ADDRESS}/{quote(name, safe='')}"))
    words = " ".join(re.findall(r"\w+", asked))
    message = for_people(error.message.partition(" Did you mean")[0])
    context: dict[str, Any] = {"asked": asked, "near": near, "words": words, "message": message, "org": service.org}
    return pages.render(request, "article_missing.html", page="articles", status=404, **context)


# What is shown of the text


def render_article(article: "Article", cited: Cited, link: Any = None) -> Markup:
    """Return summary and body as rich text: words of the query marked, the cited passage highlighted."""
    from bedstone.search.matching import Matcher  # noqa: PLC0415 - with the engine
    from bedstone.web.documents.rich_parts import mark_passage  # noqa: PLC0415
    from bedstone.web.rich_text.rendering import render_html  # noqa: PLC0415

    marks = Matcher(cited.query) if cited.query else None
    body = render_html(_body_html(article), marks=marks, link=link, prefix="part-")
    lead = Markup('<p class="lead">{}</p>').format(_mark(article.summary, marks)) if article.summary else Markup("")
    passage = cited.passage(article.text)
    if not passage:
        return lead + body
    # A heading that repeats the title is not shown again, and lists are numbered by the browser.
    lines = [line for line in passage.splitlines() if line.strip() != article.title]
    marked = mark_passage(lead + body, "\n".join(LIST_MARK.sub("", line) for line in lines))
    return marked if marked != lead + body else mark_passage(lead + body, "\n".join(lines))


def _body_html(article: "Article") -> str:
    """Return the fields of the body as HTML, under their labels if there are several; not safe yet."""
    if not article.parts:
        return _paragraphs(article.body)
    parts = []
    for part in article.parts:
        label = f"<h1>{escape(part.label)}</h1>" if len(article.parts) > 1 else ""
        content = _without_title(part.content, article.title) if part.is_rich else _paragraphs(part.content)
        parts.append(f"{label}<div>{content}</div>")
    return "".join(parts)


def _without_title(html: str, title: str) -> str:
    found = FIRST_HEADING.match(html)
    if found is None or unescape(TAGS.sub("", found[2])).strip() != title:
        return html
    return html[found.end() :]


def _paragraphs(text: str) -> str:
    blocks = [escape(block.strip()) for block in PARAGRAPHS.split(text) if block.strip()]
    return "".join(f"<p>{str(block).replace(chr(10), '<br>')}</p>" for block in blocks)


def _mark(text: str | None, marks: "Matcher | None") -> Markup:
    from bedstone.search.hits import Snippet  # noqa: PLC0415 - with the engine

    found = tuple((start, end) for start, end, _ in marks.find(text or "")) if marks else ()
    return highlight(Snippet(text or "", found))


def _make_link(naming: "ArticleNaming", contents: "MirrorContents | None") -> Any:
    """Return what turns a relative link into one to the page of an article, or to the org."""

    def link(address: str) -> str | None:
        name = unquote(urlsplit(address).path.rstrip("/").rpartition("/")[2])
        if contents is not None and (known := contents.find_named(name)):
            return naming.address(known[0])
        base = naming.instance_url or ""
        return f"{base}{address}" if base.startswith("https://") and address.startswith("/") else None

    return link


# What stands around it


def _agent_answer(article: "Article", mirrored_at: str | None) -> dict[str, Any]:
    """Return what get_article_by_id answers; `mirrored_at` only where the mirror answers agents, not the org."""
    from bedstone.toolsets.salesforce_knowledge.toolset import answer_with  # noqa: PLC0415 - with its models

    payload = Reply.of(answer_with(article, mirrored_at, ())).payload
    assert isinstance(payload, dict)
    return payload


def _search_line(article: "Article", naming: "ArticleNaming") -> dict[str, Any]:
    """Return what search_articles says about an article."""
    from bedstone.toolsets.salesforce_knowledge.toolset import line_of  # noqa: PLC0415 - with its models

    payload = Reply.of(line_of(article, naming)).payload
    assert isinstance(payload, dict)
    return payload


def _languages(
    article: "Article", naming: "ArticleNaming", contents: "MirrorContents | None"
) -> list[tuple[str, str, str, bool]]:
    """Return the translations: code, name and address, and whether it is shown."""
    found = contents.translations(article.article_id) if contents is not None else ()
    return [
        (html_language(item.language), language_name(item.language), naming.address(item), item.id == article.id)
        for item in found
    ]


def _categories(article: "Article", contents: "MirrorContents | None") -> "list[tuple[Category, str]]":
    """Return the lowest categories of an article, with the address of the list of each."""
    found = contents.categories_of(article) if contents is not None else []
    return [(category, _list_address(article, category)) for category in found]


def _list_address(article: "Article", category: "Category") -> str:
    language = {"language": article.language} if article.language else {}
    return f"{ADDRESS}?{urlencode({'category': category.key, **language})}"


def _find_related(article: "Article", naming: "ArticleNaming", contents: "MirrorContents | None") -> Related | None:
    """Return further articles of the category that says most about an article: the one with the fewest."""
    categories = [category for category, _ in _categories(article, contents)]
    if contents is None or not categories:
        return None
    chosen = min(categories, key=lambda item: len(item.articles))
    same = [item for item in contents.articles if item.id in chosen.articles and item.language == article.language]
    others = [(item, naming.address(item)) for item in same if item.id != article.id]
    if not others:
        return None
    return Related(chosen.label, _list_address(article, chosen), len(same), others[:MAX_RELATED])


def _salesforce_url(naming: "ArticleNaming", article: "Article") -> str | None:
    from bedstone.services.articles.found import article_url  # noqa: PLC0415 - with the engine

    return article_url(naming.instance_url, article)


def _with(request: Request, **changes: str) -> str:
    """Return the address of this page with changes."""
    given = {**request.query_params, **changes}
    text = urlencode({key: value for key, value in given.items() if value})
    return f"?{text}" if text else request.url.path


def _parse(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None
