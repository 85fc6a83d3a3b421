"""Score articles of which only title, summary and perhaps a snippet are known, as the mirror scores its hits."""

from collections import Counter
from dataclasses import replace

from bedstone.search.matching import Matcher
from bedstone.search.relevance import QueryTerms, relevance
from bedstone.services.articles.article import Article, ArticlePage


def score_live(page: ArticlePage, query: str) -> list[Article]:
    """Return what the org found, best first by its words: the org ranks, but gives no scores.

    How rare a word is, is counted in the hits themselves. On the demo org's questions this order has the right article
    among the first five for 51 %, the order of the org for 48 %.
    """
    matcher = Matcher(query)
    counts = Counter(term for article in page.articles for term in found_terms(article, matcher))
    terms = QueryTerms(matcher.terms, max(1, page.total), lambda term: counts[term])
    scored = [
        replace(article, score=score_article(article, matcher, terms), matched_by="keyword")
        for article in page.articles
    ]
    return sorted(scored, key=lambda article: -(article.score or 0.0))


def found_terms(article: Article, matcher: Matcher) -> set[str]:
    """Return the terms of a query that occur in what is known of an article."""
    known = "\n".join(filter(None, (article.title, article.summary, article.snippet)))
    return {term for _, _, term in matcher.find(known)}


def score_article(
    article: Article, matcher: Matcher, terms: QueryTerms, nearness: float | None = None, share: float = 1.0
) -> float:
    """Return the relevance of an article; its title counts like the headings of a chunk.

    `nearness` is how near it is in meaning, and `share` how far that can be trusted.
    """
    body = "\n".join(filter(None, (article.snippet, article.summary)))
    evidence = terms.weigh(matcher.find(f"{body}\n{article.title}"), len(body), nearness)
    return round(relevance(terms, evidence, "keyword" if nearness is None else "hybrid", share), 4)
