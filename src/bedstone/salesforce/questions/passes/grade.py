"""How much of a question was understood."""

from collections.abc import Iterator

from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.question import NEGATIONS, Question
from bedstone.salesforce.synonyms import STOP_WORDS

MIN_CONFIDENCE = 0.1
DOUBTFUL_CONFIDENCE = 0.3
WORD_PENALTY = 0.08
# Left over, these words make an answer wrong rather than incomplete.
SIGNIFICANT_WORDS = NEGATIONS | frozenset(
    "between before after older newer over under more less above below than or my mine owned by each either most least "  # noqa: SIM905
    "highest lowest largest smallest per inactive active top".split()
)
PUNCTUATION = frozenset("(),$€£")
CHANGES = frozenset("delete remove update insert create drop truncate merge change set".split())  # noqa: SIM905


def grade(question: Question, draft: QueryDraft, _: SchemaContext) -> None:
    """List the words that were not understood, and lower the confidence for them."""
    draft.ungrounded = list(dict.fromkeys([*_leftover_words(question), *_impossible_orders(draft)]))
    draft.confidence = round(max(MIN_CONFIDENCE, draft.confidence - WORD_PENALTY * len(draft.ungrounded)), 2)
    if _is_doubtful(question, draft):
        draft.confidence = min(draft.confidence, DOUBTFUL_CONFIDENCE)


def _leftover_words(question: Question) -> Iterator[str]:
    for place, word in enumerate(question.folded):
        is_telling = word in SIGNIFICANT_WORDS or (word not in STOP_WORDS and word not in PUNCTUATION)
        if question.is_free(place) and (is_telling or question.is_quoted(place)):
            yield question.text(place)


def _impossible_orders(draft: QueryDraft) -> list[str]:
    """Return the orders that groups do not have: `the latest opportunity of each account`."""
    if not draft.aggregates and not draft.groups:
        return []
    known = (*draft.groups, *(f"{function}({name})" for function, name in draft.aggregates))
    return [f"order by {order}" for order in draft.orders if not order.startswith(known)]


def _is_doubtful(question: Question, draft: QueryDraft) -> bool:
    """Whether a word is left that changes the answer: a number, a quotation, a name, a negation."""
    if not CHANGES.isdisjoint(question.folded[:2]):
        return True
    return any(question.is_free(place) and _changes_answer(question, place) for place in range(len(question)))


def _changes_answer(question: Question, place: int) -> bool:
    word, folded = question.words[place], question.folded[place]
    is_name = word[0].isupper() and place > 0 and folded not in STOP_WORDS and not word.isupper()
    return is_name or question.is_quoted(place) or word[0].isdigit() or folded in SIGNIFICANT_WORDS
