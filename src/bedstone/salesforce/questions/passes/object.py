"""Which object a question is about."""

from collections import Counter
from collections.abc import Iterator

from bedstone.salesforce.graph.names import squeeze
from bedstone.salesforce.graph.object_names import ObjectNames, split_camel_case
from bedstone.salesforce.questions.context import SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft
from bedstone.salesforce.questions.question import Mention, Question
from bedstone.salesforce.synonyms import STOP_WORDS

MAX_NAME_WORDS = 4
MIN_FIELD_LENGTH = 4  # characters of a word that names a field by itself
PREFERRED = ("Account", "Opportunity", "Contact")
# After these words the name of an object is a field of another one: by owner, without account.
BEFORE_FIELDS = ("by", "per", "their", "without")


def find_object(question: Question, schema: SchemaContext) -> QueryDraft | None:
    """Begin a draft with the object that is named first, or that has the fields that are named."""
    question.mentions = tuple(find_mentions(question, schema.names))
    for place, mention in enumerate(question.mentions):
        if _is_field_of_next(question, schema, place) or _is_followed_by_name(question, place):
            continue
        if place == 0 or question.folded_at(mention.start - 1) not in BEFORE_FIELDS:
            question.consume(mention.start, mention.end)
            explanation = _explain(question.phrase(mention.start, mention.end), mention)
            return QueryDraft(mention.object, min(0.95, mention.score), explanation)
    return _find_by_fields(question, schema)


def _is_field_of_next(question: Question, schema: SchemaContext, place: int) -> bool:
    """Whether a synonym of an object is a field of the object named next: the price of bikes."""
    mention = question.mentions[place]
    if not mention.why.startswith("synonym") or place + 1 >= len(question.mentions):
        return False
    following = question.mentions[place + 1]
    is_joined = question.folded[mention.end : following.start] in (("of",), ("of", "all"), ("of", "the"), ("for",))
    words = question.words[mention.start : mention.end]
    return is_joined and schema.fields.find(following.object, words) is not None


def _is_followed_by_name(question: Question, place: int) -> bool:
    """Whether a synonym stands right before the name of the same object: partner accounts."""
    mention, *others = question.mentions[place:]
    return bool(others) and others[0].object is mention.object and others[0].start == mention.end


def find_mentions(question: Question, names: ObjectNames) -> Iterator[Mention]:
    """Yield the objects that are named; the longest names win."""
    place = 0
    while place < len(question):
        mention = _mention_at(question, names, place)
        if mention is not None:
            yield mention
        place = mention.end if mention is not None else place + 1


def _mention_at(question: Question, names: ObjectNames, place: int) -> Mention | None:
    for length in range(min(MAX_NAME_WORDS, len(question) - place), 0, -1):
        phrase = question.phrase(place, place + length)
        if length == 1 and phrase.lower() in STOP_WORDS:
            continue
        named = names.find(split_camel_case(phrase)) or names.find(phrase)
        if named:
            return Mention(place, place + length, *named[0])
    return None


def _explain(phrase: str, mention: Mention) -> str:
    if mention.why in ("name", "label", "plural label"):
        return f'"{phrase}" is the {mention.why} of {mention.object.name}.'
    return f'"{phrase}" means {mention.object.name} ({mention.why}).'


def _find_by_fields(question: Question, schema: SchemaContext) -> QueryDraft | None:
    words = [squeeze(word) for word in question.words if len(word) >= MIN_FIELD_LENGTH]
    counts = Counter(owner for word in words for owner in schema.fields.owners(word))
    owners = [item for item in schema.graph.objects.values() if item.name in counts] if counts else []
    best = max(owners, key=lambda item: counts[item.name] + 0.1 * (item.name in PREFERRED), default=None)
    if best is None:
        return None
    return QueryDraft(best, 0.6, f"No object is named; {best.name} has the fields that are.")
