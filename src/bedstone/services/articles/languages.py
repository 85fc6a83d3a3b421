"""The language of a search: `en`, `en-US` and `EN_us` all mean en_US."""

from collections.abc import Collection

from bedstone.errors import InvalidInput
from bedstone.services.articles.article import DEFAULT_LANGUAGE


def resolve_language(wanted: str | None, known: Collection[str]) -> str:
    """Return a language in Knowledge's spelling; raise InvalidInput for an unknown one, with those there are.

    A language without a region means its only variant, or the default one; a region that has no variant of its own
    means the language without a region. Without known languages, any is accepted. None means the default language, or
    the first one there is.
    """
    if wanted is None:
        return DEFAULT_LANGUAGE if not known or DEFAULT_LANGUAGE in known else min(known)
    name = wanted.strip().replace("-", "_").lower()
    names = {language.lower(): language for language in known}
    bare = name.partition("_")[0]
    variants = [language for language in sorted(names) if language.partition("_")[0] == bare]
    default = DEFAULT_LANGUAGE.lower()
    if not names:
        return wanted.replace("-", "_")
    if name in names:
        return names[name]
    if name == bare and (len(variants) == 1 or default in variants):
        return names[default if default in variants else variants[0]]
    if bare in names:
        return names[bare]
    choices = ", ".join(sorted(names.values()))
    raise InvalidInput(f"Unknown language {wanted!r}. Knowledge in this org has: {choices}", parameter="language")
