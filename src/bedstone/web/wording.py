"""Errors in the words of people: pages instead of tools and commands, and the next step."""

import re
from collections.abc import Iterable

# From what services tell agents and operators to what a page says; each is replaced wherever it stands.
REWORDED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"Chunk ID '(.*)' not found\. Use search_docs to discover valid chunk IDs\.", r"Passage '\1' not found."),
        (r"\nNearest IDs: ", " The nearest ones: "),
        (r"^Document with ID '(.*)' not found$", r"No document has the id '\1'. It may have been removed."),
        (r"^Chunk '(.*)' not found$", r"Passage '\1' not found."),
        (
            r"^Knowledge base is empty\. Add documents with knowledge-add first$",
            "No documents yet. Add some on the page Documents.",
        ),
        (
            r"^Knowledge base is empty: (.*) \(knowledge-show says why\)$",
            r"No documents can be searched: \1. Activity says why.",
        ),
        (r"^(No document can be searched yet: .*)\. Search again in a moment$", r"\1. Try again in a moment."),
        (r" Try again when task \S+ has completed\.", " Activity shows how far it is."),
        (r"; run `bedstone salesforce sync-schema`\.", ". Sync it on the page Activity."),
        (r": run `bedstone salesforce sync-schema`\.", ". Sync it on the page Activity."),
        (r"Run `bedstone salesforce sync-knowledge`\.", "Sync them on the page Activity."),
        (r"Name an org with orgId\.", "There are several orgs: choose one on the page Schema."),
        (
            r"Choose an org with --org \(none yet; (`.*`) adds one\)\.",
            r"No org is connected yet. Log in to one on the command line with \1.",
        ),
        (
            r"Choose an org with --org \((.*)\)\.",
            r"There are several orgs (\1); the setting salesforce.org chooses one.",
        ),
    )
)
SENTENCE = re.compile(r"(?<=[.!?])\s+")
PLAIN_WORD = re.compile(r"[a-z]+")
MAX_CHARACTERS = 4_000  # of a message: a long one repeats the request, and takes long to reword


def for_people(message: str, tools: Iterable[str] = ()) -> str:
    """Return a message without names of tools: in the words of pages, or without the sentence that names one."""
    message = message if len(message) <= MAX_CHARACTERS else f"{message[:MAX_CHARACTERS]}…"
    for pattern, text in REWORDED:
        message = pattern.sub(text, message)
    names = [re.escape(name) for name in tools if not PLAIN_WORD.fullmatch(name)]
    if not names:
        return message
    named = re.compile(rf"(?:^|\W)(?:{'|'.join(names)})(?:\W|$)")
    kept = [sentence for sentence in SENTENCE.split(message) if not named.search(sentence)]
    return " ".join(kept) or message
