"""Questions in plain English to a frame: which object, which fields, filters, groups; by rules, and with reasons."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bedstone.errors import InvalidInput
from bedstone.library.schema.columns import default_columns
from bedstone.library.schema.field_names import FieldNames
from bedstone.library.schema.frame import Filter, Frame
from bedstone.library.schema.grounding import Grounder, amount, date_literal
from bedstone.library.schema.places import COUNTRIES, REGIONS
from bedstone.library.schema.words import FIELD_WORDS, STOP, singular
from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import squeezed, words_of
from bedstone.salesforce.soql.quoting import like_string, soql_string
from bedstone.services.schema.search import SchemaSearch

# Not the apostrophes of O'Connor's.
QUOTED = re.compile(
    r"(?<!\w)['\"\u2018\u2019\u201c\u201d]([^'\"\u2018\u2019\u201c\u201d]+)['\"\u2018\u2019\u201c\u201d](?!\w)"
)
TOKEN = re.compile(
    r"\x00\d+\x00|\d{4}-\d\d-\d\d|[A-Za-z][\w-]*(?:'t)?(?:\.[A-Za-z]\w*)*|\d[\d,]*(?:\.\d+)?(?:%|[kKmM]\b|bn\b)?|[<>]=?|!=|=|[(),$€£]"
)
NEGATIONS = frozenset("not no except excluding never without non isn't aren't don't doesn't neither nor unless".split())  # noqa: SIM905
# Words that ask for something: left over, they make an answer wrong rather than incomplete.
TELLING = frozenset(
    "between before after older newer over under more less above below than or my mine owned by each either most least "  # noqa: SIM905
    "highest lowest largest smallest per inactive active top".split()
)
CHANGES = frozenset("delete remove update insert create drop truncate merge change set".split())  # noqa: SIM905
MAIN_AMOUNTS = {"Opportunity": "Amount", "Account": "AnnualRevenue", "Lead": "AnnualRevenue", "Order": "TotalAmount"}
STATES = frozenset({"closed", "won", "lost", "new"})  # verbs of dates that may be values of a picklist too
BEFORE_NAMES = frozenset("of for at from by with account company".split())  # noqa: SIM905
UNITS = frozenset("day days week weeks month months year years hour hours minute minutes percent times".split())  # noqa: SIM905
LEAST_AMOUNT = 1_000  # that is money without saying so
ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
YEAR = re.compile(r"(19|20)\d\d")
DOUBTFUL = 0.3
AGGREGATES = {
    "total": "SUM", "sum": "SUM", "average": "AVG", "avg": "AVG", "mean": "AVG", "max": "MAX", "maximum": "MAX",
    "highest": "MAX", "largest": "MAX", "min": "MIN", "minimum": "MIN", "lowest": "MIN", "smallest": "MIN",
}  # fmt: skip
COMPARISONS = (
    (("greater", "than"), ">"), (("more", "than"), ">"), (("larger", "than"), ">"), (("less", "than"), "<"),
    (("fewer", "than"), "<"), (("smaller", "than"), "<"), (("at", "least"), ">="), (("at", "most"), "<="),
    (("not", "in"), "NOT IN"), (("is", "not"), "!="), (("not", "equal", "to"), "!="), (("over",), ">"),
    (("above",), ">"), (("exceeding",), ">"), (("under",), "<"), (("below",), "<"), (("is",), "="), (("are",), "="),
    (("equals",), "="), (("=",), "="), (("!=",), "!="), ((">=",), ">="), (("<=",), "<="), ((">",), ">"), (("<",), "<"),
    (("in",), "IN"), (("like",), "LIKE"), (("contains",), "LIKE"), (("containing",), "LIKE"), (("of",), "="),
)  # fmt: skip
DATE_WORDS = {
    "created": ("CreatedDate",), "opened": ("CreatedDate",), "added": ("CreatedDate",), "new": ("CreatedDate",),
    "modified": ("LastModifiedDate",), "updated": ("LastModifiedDate",), "changed": ("LastModifiedDate",),
    "closing": ("CloseDate", "EndDate"), "close": ("CloseDate",), "closed": ("CloseDate", "ClosedDate"),
    "due": ("ActivityDate", "DueDate"), "starting": ("StartDate",), "ending": ("EndDate",),
    "expiring": ("ExpirationDate", "EndDate"), "birthdays": ("Birthdate",), "birthday": ("Birthdate",),
    "won": ("CloseDate",), "lost": ("CloseDate",),
}  # fmt: skip
NUMBERS = {"million": 1e6, "thousand": 1e3, "billion": 1e9, "k": 1e3, "m": 1e6}
LEAST = 0.35  # confidence below which no query is offered
LONGEST_PHRASE = 4
LONGEST_NAME = 8
PERIODS = {"year": "CALENDAR_YEAR", "quarter": "CALENDAR_QUARTER", "month": "CALENDAR_MONTH"}


@dataclass(frozen=True)
class _Mention:
    start: int
    end: int
    object: ObjectSchema
    score: float
    why: str


class Interpreter:
    """Reads questions against one schema."""

    def __init__(self, graph: SchemaGraph, search: SchemaSearch, grounder: Grounder) -> None:
        self._graph = graph
        self._search = search
        self._grounder = grounder
        self._fields = FieldNames()

    def read(self, question: str) -> Frame | None:
        """The frame of a question; None where no object can be made out."""
        return _Reading(self._graph, self._search, self._grounder, self._fields, question).frame()


class _Reading:
    """One question, word by word."""

    def __init__(
        self, graph: SchemaGraph, search: SchemaSearch, grounder: Grounder, fields: FieldNames, question: str
    ) -> None:
        self._graph = graph
        self._search = search
        self._grounder = grounder
        self._fields = fields
        self._texts: list[str] = []

        def keep(found: "re.Match[str]") -> str:
            self._texts.append(found[1].replace("\u2013", "-"))
            return f" \0{len(self._texts) - 1}\0 "

        self._words = TOKEN.findall(
            QUOTED.sub(keep, question).replace("closed-won", "closed won").replace("-Won", " Won")
        )
        self._lower = [word.lower() for word in self._words]
        self._used: set[int] = set()
        self._is_guessed = False  # which amount is meant: nothing may be left over then

    def frame(self) -> Frame | None:
        mentions = list(self._mentions())
        frame = self._begin(mentions)
        if frame is None:
            return None
        self._purpose(frame)
        self._ownership(frame)
        self._limits(frame)
        self._grouping(frame)
        self._orders(frame)
        self._related(frame, mentions)
        self._companies(frame)
        self._comparisons(frame)
        self._dates(frame, frame.filters, frame.object, 0, len(self._words))
        self._values(frame, frame.filters, frame.object, 0, len(self._words))
        self._states(frame)
        self._unite(frame)
        self._columns(frame)
        frame.ungrounded = list(dict.fromkeys(self._leftover()))
        frame.confidence = round(max(0.1, frame.confidence - 0.08 * len(frame.ungrounded)), 2)
        if self._is_doubtful():
            frame.confidence = min(frame.confidence, DOUBTFUL)
        return frame

    def _leftover(self) -> Iterator[str]:
        for place, word in enumerate(self._words):
            if place in self._used:
                continue
            if word.startswith("\0"):
                yield self._text(place)
            elif (
                word.lower() in TELLING or word.lower() in NEGATIONS or (word[0].isalnum() and word.lower() not in STOP)
            ):
                yield word

    def _is_doubtful(self) -> bool:
        """Whether something was not read that changes the answer: a number, a quoted text, a name, a negation."""
        if self._is_guessed and next(self._leftover(), None) is not None:
            return True
        for place, word in enumerate(self._words):
            lower = word.lower()
            if lower in CHANGES and place <= 1:
                return True
            if place in self._used:
                continue
            is_name = word[0].isupper() and place > 0 and lower not in STOP and not word.isupper()
            if word.startswith("\0") or word[0].isdigit() or is_name or lower in NEGATIONS or lower in TELLING:
                return True
        return False

    def _is_negated(self, place: int) -> bool:
        """Whether a negation stands just before; it is read with what follows."""
        for at in range(place - 1, max(-1, place - 5), -1):
            word = self._lower[at]
            if word in NEGATIONS and at not in self._used:
                self._use(at, at + 1)
                return True
            if word not in ("a", "an", "any", "the", "in", "of", "yet", "are", "is", "with"):
                return False
        return False

    def _ownership(self, frame: Frame) -> None:
        """`my cases`, `owned by Jane Doe`."""
        for place, word in enumerate(self._lower):
            if word in ("my", "mine") and (not frame.object.scopes or "mine" in frame.object.scopes):
                frame.scope = "mine"
                self._use(place, place + 1)
        at = self._find("owned", "by")
        if at is not None and frame.object.by_relationship.get("owner") is not None:
            end = at + 2
            while end < len(self._words) and (self._words[end][:1].isupper() or self._words[end].startswith("\0")):
                end += 1
            name = " ".join(
                self._text(place) if self._words[place].startswith("\0") else self._words[place]
                for place in range(at + 2, end)
            )
            if name:
                frame.filters.append(Filter(frame.object.name, "Owner.Name", "=", soql_string(name), "name", 0.8))
                self._use(at, end)

    def _states(self, frame: Frame) -> None:
        """`inactive users`, `named 'x'`, `in Berlin`."""
        item = frame.object
        active = item.field("IsActive")
        for place, word in enumerate(self._lower):
            if place in self._used:
                continue
            following = place + 1
            if word in ("active", "inactive") and active is not None:
                is_on = (word == "active") != self._is_negated(place)
                frame.filters.append(Filter(item.name, "IsActive", "=", str(is_on).lower(), "phrase", 0.9))
                self._use(place, following)
            elif word in ("named", "called") and item.name_field is not None:
                is_like = self._lower[following : following + 1] == ["like"]
                at = following + is_like
                if at < len(self._words) and self._words[at].startswith("\0"):
                    text = self._text(at)
                    value = like_string(text, before=True) if is_like else soql_string(text)
                    operator = "LIKE" if is_like else "="
                    frame.filters.append(Filter(item.name, item.name_field.name, operator, value, "name", 0.9))
                    self._use(place, at + 1)
            elif word == "in":
                self._place(frame, place)

    def _place(self, frame: Frame, place: int) -> None:
        """`in Germany`, `in New Jersey`, `in Berlin`."""
        end = start = place + 1
        while (
            end < len(self._words)
            and end not in self._used
            and self._words[end].isalpha()
            and self._words[end][0].isupper()
        ):
            end += 1
        for stop in range(end, start, -1):
            name = " ".join(self._words[start:stop])
            kind = "Country" if name.casefold() in COUNTRIES else "State" if name.casefold() in REGIONS else "City"
            if kind == "City" and stop > start + 1 and stop < end:
                continue  # a city is all of the name, or its first word
            spelt = (f"Billing{kind}", f"Mailing{kind}", kind, f"{kind}__c")
            field = next((item for item in spelt if frame.object.field(item) is not None), None)
            if field is not None:
                frame.filters.append(Filter(frame.object.name, field, "=", soql_string(name), "place", 0.6))
                frame.assumptions.append(f"{name} is taken for a {kind.lower()}")
                self._use(place, stop)
                return

    def _companies(self, frame: Frame) -> None:
        """`open cases of Acme Cycles`: companies the last sync saw."""
        for place in range(len(self._words)):
            for end in range(min(len(self._words), place + LONGEST_NAME), place, -1):
                if not self._used.isdisjoint(range(place, end)):
                    continue
                words = [
                    self._text(at) if self._words[at].startswith("\0") else self._words[at] for at in range(place, end)
                ]
                found = self._grounder.company_filter(words, frame.object)
                if found is None or words[0][:1].islower():
                    continue
                frame.filters.append(Filter(frame.object.name, found[0], "=", found[1], "company", 0.9))
                before = place
                while before and self._lower[before - 1] in BEFORE_NAMES:
                    before -= 1
                self._use(before, end)
                break

    def _unite(self, frame: Frame) -> None:
        """Several values of one field are alternatives: no record has two at once."""
        united: list[Filter] = []
        for entry in frame.filters:
            same = next((other for other in united if other.path == entry.path and other.operator in ("=", "IN")), None)
            if same is not None and entry.operator == "=" and entry.value != same.value and entry.value.startswith("'"):
                values = same.value.strip("()") if same.operator == "IN" else same.value
                united[united.index(same)] = replace(same, operator="IN", value=f"({values}, {entry.value})")
                self._use_words("or", "and")
            elif same is None or same.value != entry.value:
                united.append(entry)
        frame.filters = united

    # The object

    def _mentions(self) -> Iterator[_Mention]:
        place = 0
        while place < len(self._words):
            found = None
            for length in range(min(LONGEST_PHRASE, len(self._words) - place), 0, -1):
                phrase = " ".join(self._words[place : place + length])
                if length == 1 and phrase.lower() in STOP:
                    continue
                named = self._search.objects_named(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", phrase)) or (
                    self._search.objects_named(phrase)
                )
                if named:
                    item, score, why = named[0]
                    found = _Mention(place, place + length, item, score, why)
                    break
            if found is not None:
                yield found
                place = found.end
            else:
                place += 1

    def _begin(self, mentions: Sequence[_Mention]) -> Frame | None:
        sure = [mention for mention in mentions if not self._is_field_word(mention, mentions)]
        if sure:
            first = sure[0]
            self._use(first.start, first.end)
            shown = " ".join(self._words[first.start : first.end])
            why = (
                f'"{shown}" is the {first.why} of {first.object.name}'
                if first.why in ("name", "label", "plural label")
                else (f'"{shown}" means {first.object.name} ({first.why})')
            )
            return Frame(first.object, min(0.95, first.score), f"{why}.")
        return self._by_fields()

    def _is_field_word(self, mention: _Mention, mentions: Sequence[_Mention]) -> bool:
        """Whether a word that could be an object is a field of another one here: `by Owner`, `Account Names`."""
        before = self._lower[mention.start - 1] if mention.start else ""
        return before in ("by", "per", "their", "without") and mention is not mentions[0]

    def _by_fields(self) -> Frame | None:
        """No object is named: the one that has the fields that are."""
        names = [squeezed(word) for word in self._words if len(word) > 3]  # noqa: PLR2004
        best: tuple[float, ObjectSchema] | None = None
        for item in self._graph.objects.values():
            labels = {squeezed(entry.name) for entry in item.fields} | {squeezed(entry.label) for entry in item.fields}
            score = sum(name in labels for name in names) + 0.1 * (item.name in ("Account", "Opportunity", "Contact"))
            if score >= 1 and (best is None or score > best[0] + 1e-9):
                best = (score, item)
        if best is None:
            return None
        return Frame(best[1], 0.6, f"No object is named; {best[1].name} has the fields that are.")

    # Clauses

    def _purpose(self, frame: Frame) -> None:
        for word in ("view", "reference"):
            at = self._find("for", word)
            if at is not None:
                frame.purpose = word.upper()
                self._use(at, at + 2)
                self._use_words("using")

    def _limits(self, frame: Frame) -> None:
        for place, word in enumerate(self._lower):
            following = self._lower[place + 1] if place + 1 < len(self._lower) else ""
            if word == "top" and following.isdigit():
                self._use(place, place + 1)
            if word in ("top", "first", "latest", "last") and following.isdigit() and not self._is_period(place + 2):
                if "skipping" in self._lower[max(0, place - 3) : place]:
                    frame.offset = int(following)
                else:
                    frame.limit = int(following)
                self._use(place, place + 2)
            elif word.isdigit() and place not in self._used and self._is_count(place):
                frame.limit = int(word)
                self._use(place, place + 1)
        at = (
            self._find("most", "recently")
            or self._find("most", "recent")
            or self._find("newest")
            or self._find("latest")
        )
        if at is not None and frame.object.field("CreatedDate"):
            frame.orders.append("CreatedDate DESC")
            frame.columns.append("CreatedDate")
            frame.intent = "top"
            frame.limit = frame.limit or 10
            self._use(at, at + 2)
            self._use_words("created", "modified", "updated")
        if frame.limit is not None and frame.intent == "list" and frame.offset is None and "top" in self._lower:
            frame.intent = "top"
        if frame.offset is not None:
            self._use_words("skipping", "after")
        if frame.offset is not None and not frame.orders and frame.object.name_field is not None:
            frame.orders.append(frame.object.name_field.name)

    def _is_period(self, place: int) -> bool:
        return place < len(self._lower) and singular(self._lower[place]) in ("day", "week", "month", "quarter", "year")

    def _is_count(self, place: int) -> bool:
        """Whether a number says how many are wanted: `the 5 most recent`, `50 Contacts`."""
        after = self._lower[place + 1 : place + 2]
        before = self._lower[place - 1] if place else ""
        if before in ("last", "next", "past", "than", "over", "above", "below", "under", "is", "=", ">", "<"):
            return False
        named = bool(after) and self._words[place + 1] in self._words and bool(self._search.objects_named(after[0]))
        return bool(after) and (after[0] in ("most", "latest", "newest", "records") or named)

    def _grouping(self, frame: Frame) -> None:
        item = frame.object
        counting = [place for place, word in enumerate(self._lower) if word in ("count", "number") or word == "many"]
        functions = [(place, AGGREGATES[word]) for place, word in enumerate(self._lower) if word in AGGREGATES]
        for place, function in functions:
            found = self._field_after(item, place + 1)
            main = item.field(MAIN_AMOUNTS.get(item.name, "Amount"))
            if found is not None and found[0].type in ("currency", "double", "int", "percent", "date", "datetime"):
                frame.aggregates.append((function, found[0].name))
                self._use(place, place + 1)
                self._use(found[1], found[2])
            elif main is not None:
                self._is_guessed = True
                frame.aggregates.append((function, main.name))
                self._use(place, place + 1)
                self._use_words("size", "value", "pipeline")
        at = self._find("grouped", "by") or self._find("group", "by")
        length = 2
        if at is None:
            at, length = self._find("for", "each"), 2
        if at is None:
            at, length = self._find("per"), 1
        if at is None and (counting or frame.aggregates):
            at, length = self._find("by"), 1
        elif at is None and frame.limit is not None and (by := self._find("by")) is not None:
            found = self._field_after(item, by + 1)
            if found is not None and found[0].sortable:  # the top five by revenue
                frame.orders.append(f"{found[0].name} DESC NULLS LAST")
                frame.columns.append(found[0].name)
                self._use(by, found[2])
        if at is not None and (counting or frame.aggregates or length == 2 or self._lower[at] == "per"):  # noqa: PLR2004
            self._group_by(frame, at + length)
            self._use(at, at + length)
        if (counting and not frame.aggregates) or (frame.groups and not frame.aggregates):
            frame.aggregates.append(("COUNT", "Id"))
            self._use_words("count", "number", "many", "how")
        if frame.aggregates:
            frame.intent = "group" if frame.groups else frame.aggregates[0][0].lower()
            if frame.intent in ("avg", "max", "min"):
                frame.intent = "sum"

    def _group_by(self, frame: Frame, place: int) -> None:
        item = frame.object
        word = self._lower[place] if place < len(self._lower) else ""
        if word in PERIODS:
            date_field = "CloseDate" if item.field("CloseDate") else "CreatedDate"
            date_field = "CreatedDate" if item.name == "Case" else date_field
            frame.groups.append(f"{PERIODS[word]}({date_field})")
            self._use(place, place + 1)
            return
        found = self._field_after(item, place)
        link = item.by_relationship.get(squeezed(word)) or item.by_relationship.get(singular(squeezed(word)))
        if link is not None and len(link.reference_to) == 1:
            frame.groups.append(f"{link.relationship}.Name")
            self._use(place, place + 1)
        elif found is not None:
            frame.groups.append(found[0].name)
            self._use(found[1], found[2])

    def _orders(self, frame: Frame) -> None:
        at = (
            self._find("ordered", "by")
            or self._find("sorted", "by")
            or self._find("order", "by")
            or self._find("sort", "by")
        )
        if at is None:
            return
        found = self._field_after(frame.object, at + 2)
        self._use(at, at + 2)
        if found is None:
            return
        self._use(found[1], found[2])
        rest = self._lower[found[2] : found[2] + 1]
        descends = bool(rest) and rest[0] in ("desc", "descending")
        frame.orders.append(found[0].name + (" DESC" if descends else ""))
        frame.columns.append(found[0].name)
        self._use_words("desc", "descending", "asc", "ascending")

    # Other objects

    def _related(self, frame: Frame, mentions: Sequence[_Mention]) -> None:
        for mention in mentions:
            if mention.start in self._used:
                continue
            before = self._lower[max(0, mention.start - 4) : mention.start]
            after = self._lower[mention.end] if mention.end < len(self._lower) else ""
            if mention.object is frame.object:
                self._use(mention.start, mention.end)
            elif "without" in before or "no" in before:
                self._use_words("no")
                self._without(frame, mention)
            elif "least" in before or "have" in before or "has" in before:
                self._having(frame, mention)
            elif singular(after) == "name" or not self._child(frame, mention):
                self._parent_name(frame, mention)
        for relationship, link in frame.object.by_relationship.items():
            for place, word in enumerate(self._lower):
                if place not in self._used and squeezed(word) == relationship and len(link.reference_to) >= 1:
                    frame.columns.append(f"{link.relationship}.Name")
                    self._use(place, place + 1)
                    self._use_near(place, "name", "names", "user")

    def _link_to(self, frame: Frame, target: ObjectSchema) -> Field | None:
        links = [edge.field for edge in self._graph.parents(frame.object.name) if edge.parent == target.name]
        plain = [link for link in links if link.relationship]
        named = [link for link in plain if str(link.relationship).lower() == target.name.lower()]
        return next(iter([*named, *plain]), None)

    def _parent_name(self, frame: Frame, mention: _Mention) -> None:
        link = self._link_to(frame, mention.object)
        if link is None:
            return
        inner: list[Filter] = []
        self._dates(frame, inner, mention.object, mention.end, len(self._words))
        inner += self._compared(mention.object, mention.end, len(self._words))
        self._values(frame, inner, mention.object, mention.start - 3, len(self._words))
        self._use(mention.start, mention.end)
        if inner and len(link.reference_to) == 1:
            frame.filters += [
                Filter(
                    entry.object,
                    f"{link.relationship}.{entry.path}",
                    entry.operator,
                    entry.value,
                    entry.source,
                    entry.confidence,
                )
                for entry in inner
            ]
            return
        frame.columns.append(f"{link.relationship}.Name")
        self._use_near(mention.end - 1, "name", "names")

    def _child(self, frame: Frame, mention: _Mention) -> bool:
        edges = [edge for edge in self._graph.children(frame.object.name) if edge.child == mention.object.name]
        named = [edge for edge in edges if edge.child_relationship]
        if not named:
            return False
        best = min(named, key=lambda edge: (len(edge.field.reference_to) > 1, len(str(edge.child_relationship))))
        self._use(mention.start, mention.end)
        filters: list[Filter] = self._compared(mention.object, mention.end, len(self._words))
        self._values(frame, filters, mention.object, mention.start - 3, mention.end)
        frame.children.append((str(best.child_relationship), mention.object, filters))
        return True

    def _without(self, frame: Frame, mention: _Mention) -> None:
        link = self._link_to(frame, mention.object)
        edges = [edge for edge in self._graph.children(frame.object.name) if edge.child == mention.object.name]
        self._use(mention.start, mention.end)
        self._use_words("without")
        if link is not None and not edges:
            frame.filters.append(Filter(frame.object.name, link.name, "=", "null", "phrase", 0.9))
        elif edges:
            self._join(frame, mention, edges[0].field, negated=True)
        elif link is not None:
            frame.filters.append(Filter(frame.object.name, link.name, "=", "null", "phrase", 0.9))

    def _having(self, frame: Frame, mention: _Mention) -> None:
        edges = [edge for edge in self._graph.children(frame.object.name) if edge.child == mention.object.name]
        if not edges:
            self._parent_name(frame, mention)
            return
        self._use(mention.start, mention.end)
        self._use_words("least", "one", "have", "has", "at")
        self._join(frame, mention, edges[0].field, negated=False)

    def _join(self, frame: Frame, mention: _Mention, link: Field, *, negated: bool) -> None:
        filters: list[Filter] = []
        self._values(frame, filters, mention.object, max(0, mention.start - 3), mention.end)
        self._dates(frame, filters, mention.object, mention.end, len(self._words))
        select = f"SELECT {link.name} FROM {mention.object.name}"
        frame.joins.append(("Id", select, filters, negated))

    # Conditions

    def _comparisons(self, frame: Frame) -> None:
        frame.filters += self._compared(frame.object, 0, len(self._words))
        for at, word in enumerate(self._lower):
            if word not in ("without", "no") or at in self._used:
                continue
            place = at + 1
            while place < len(self._lower) and self._lower[place] in ("a", "an", "any"):
                place += 1
            found = self._field_at(frame.object, place)
            if found is not None:
                frame.filters.append(Filter(frame.object.name, found[0].name, "=", "null", "phrase", 0.9))
                self._use(at, found[2])
        self._amounts(frame)

    def _compared(self, item: ObjectSchema, start: int, end: int) -> list[Filter]:
        """`Field operator value`, wherever it stands."""
        made = []
        place = start
        while place < end:
            found = self._field_at(item, place)
            operator = self._operator_at(found[2]) if found is not None else None
            if found is None or operator is None or place in self._used:
                more = self._number_before_field(item, place)
                if more is not None:
                    made.append(more)
                place += 1
                continue
            value = self._value_at(found[0], operator[0], operator[1])
            if value is not None:
                name = f"{found[3]}{found[0].name}"
                made.append(Filter(item.name, name, value[2] or operator[0], value[0], "comparison", 0.9))
                self._use(place, value[1])
                place = value[1]
                continue
            place += 1
        return made

    def _amounts(self, frame: Frame) -> None:
        """Amounts of money without a field: `over $50k`, `between 10000 and 50000`."""
        item = frame.object
        main = item.field(MAIN_AMOUNTS.get(item.name, "Amount"))
        for place in range(len(self._words)):
            if place in self._used or main is None:
                continue
            if self._lower[place] == "between":
                low = self._number_at(place + 1)
                high = (
                    self._number_at(low[1] + 1)
                    if low is not None and self._lower[low[1] : low[1] + 1] == ["and"]
                    else None
                )
                if low is not None and high is not None:
                    frame.filters.append(Filter(item.name, main.name, ">=", low[0], "amount", 0.8))
                    frame.filters.append(Filter(item.name, main.name, "<=", high[0], "amount", 0.8))
                    self._use(place, high[1])
                continue
            operator = self._operator_at(place)
            if operator is None or operator[0] not in (">", "<", ">=", "<="):
                continue
            number = self._number_at(operator[1])
            is_money = number is not None and (
                self._words[operator[1]] in "$€£"
                or not self._words[number[1] - 1].isdigit()
                or (float(number[0]) >= LEAST_AMOUNT and UNITS.isdisjoint(self._lower[number[1] : number[1] + 1]))
            )
            if number is not None and is_money:
                frame.filters.append(Filter(item.name, main.name, operator[0], number[0], "amount", 0.8))
                self._use(place, number[1])

    def _number_before_field(self, item: ObjectSchema, place: int) -> Filter | None:
        """`more than 100 employees`."""
        operator = self._operator_at(place)
        if operator is None or operator[0] not in (">", "<", ">=", "<=") or place in self._used:
            return None
        number = self._number_at(operator[1])
        if number is None:
            return None
        found = self._field_at(item, number[1])
        if found is None or found[0].type not in ("int", "double", "currency", "percent"):
            return None
        self._use(place, found[2])
        return Filter(item.name, found[0].name, operator[0], number[0], "comparison", 0.9)

    def _operator_at(self, place: int) -> tuple[str, int] | None:
        while place < len(self._lower) and self._lower[place] in ("field", "value"):
            place += 1
        start = place
        if place < len(self._lower) and self._lower[place] in ("is", "are", "was"):
            following = self._operator_at(place + 1)
            if following is not None and self._lower[place + 1] not in ("in", "is"):
                return following
        for words, operator in COMPARISONS:
            if tuple(self._lower[start : start + len(words)]) == words:
                return operator, start + len(words)
        return None

    def _value_at(  # noqa: PLR0911 - one for each kind of value
        self, found: Field, operator: str, place: int
    ) -> tuple[str, int, str | None] | None:
        """A literal that fits a field, where it ends, and another operator if it needs one."""
        if operator in ("IN", "NOT IN"):
            values, at = [], place
            while at < len(self._words) and (self._words[at] in "(,)" or self._words[at].startswith("\0")):
                if self._words[at].startswith("\0"):
                    values.append(soql_string(self._text(at)))
                at += 1
            return (f"({', '.join(values)})", at, operator) if values else None
        if place >= len(self._words):
            return None
        word = self._words[place]
        if word.startswith("\0"):
            text = self._text(place)
            shown = self._chosen(found, text)[0] if found.choices else ""
            value = shown.partition("= ")[2] if shown.startswith(f"{found.name} = ") else soql_string(text)
            return value, place + 1, None
        if found.type in ("int", "double", "currency", "percent"):
            number = self._number_at(place)
            return (number[0], number[1], None) if number is not None else None
        literal = self._grounder.literal(found, word)
        if literal is not None and literal.startswith("= "):
            return literal[2:], place + 1, None
        if found.choices:
            for length in (3, 2, 1):
                text = " ".join(self._words[place : place + length])
                shown, is_known, score = self._chosen(found, text)
                if is_known and score >= 0.8 and " = " in shown:  # noqa: PLR2004
                    return shown.partition(" = ")[2], place + length, None
        if operator in ("=", "!=") and found.type in ("string", "picklist") and word[:1].isupper():
            return soql_string(word), place + 1, None
        return None

    def _chosen(self, found: Field, text: str) -> tuple[str, bool, float]:
        """A filter on a picklist, where the text is one of its values."""
        try:
            return self._grounder.in_field(ObjectSchema("", "", "", ()), found, text)
        except InvalidInput:
            return "", False, 0.0

    def _number_at(self, place: int) -> tuple[str, int] | None:
        if place < len(self._words) and self._words[place] in "$€£":
            place += 1
        if place >= len(self._words) or not self._words[place][0].isdigit():
            return None
        unit = self._lower[place + 1] if place + 1 < len(self._lower) else ""
        if not self._lower[place][-1].isdigit() and not self._lower[place].endswith("%"):
            value = amount(self._lower[place])
            return (value, place + 1) if value is not None else None
        if unit in NUMBERS:
            value = amount(f"{self._words[place]} {unit}")
            return (value, place + 2) if value is not None else None
        value = amount(self._words[place].rstrip("%"))
        return (value, place + 1) if value is not None else None

    def _dates(self, frame: Frame, filters: list[Filter], item: ObjectSchema, start: int, end: int) -> None:
        for place in range(start, end):
            if place in self._used:
                continue
            for length in (6, 5, 4, 3, 2, 1):
                if place + length > end:
                    continue
                literal = date_literal(" ".join(self._lower[place : place + length]))
                if literal is None:
                    continue
                name = self._date_field(item, place)
                if name is not None:
                    shown, operator = literal, "="
                    before = self._lower[place - 1] if place else ""
                    if literal == "LAST_YEAR" and self._lower[max(0, place - 2) : place + 1].count("the"):
                        shown = "LAST_N_DAYS:365"
                    if before in ("before", "after", "since", "until"):
                        operator = {"before": "<", "after": ">", "since": ">=", "until": "<="}[before]
                        self._use(place - 1, place)
                    if (
                        ISO_DAY.fullmatch(shown)
                        and (found := item.field(name)) is not None
                        and found.type == "datetime"
                    ):
                        if operator == "=":
                            break
                        shown += "T23:59:59Z" if operator in (">", "<=") else "T00:00:00Z"
                    filters.append(Filter(item.name, name, operator, shown, "date", 0.95))
                    self._use(place, place + length)
                    self._use_near(place, "in", "the", *(DATE_WORDS.keys() - STATES))
                break
        self._ages(filters, item, start, end)

    def _ages(self, filters: list[Filter], item: ObjectSchema, start: int, end: int) -> None:
        """`older than 30 days`, `in 2024`."""
        for place in range(start, end):
            words = self._lower[place : place + 4]
            if place in self._used or len(words) < 2:  # noqa: PLR2004
                continue
            if words[:2] == ["older", "than"] and len(words) == 4 and words[2].isdigit() and self._is_period(place + 3):  # noqa: PLR2004
                unit = singular(words[3]).upper()
                if item.field("CreatedDate") is not None:
                    filters.append(
                        Filter(item.name, "CreatedDate", "<", f"LAST_N_{unit}S:{int(words[2])}", "date", 0.9)
                    )
                    self._use(place, place + 4)
            elif words[0] == "in" and YEAR.fullmatch(words[1]):
                name = self._date_field(item, place)
                if name is not None:
                    filters.append(Filter(item.name, f"CALENDAR_YEAR({name})", "=", words[1], "date", 0.9))
                    self._use(place, place + 2)

    def _date_field(self, item: ObjectSchema, place: int) -> str | None:
        """The date that is meant: by the verb before it, by a date with such a name, else the usual one."""
        before = self._lower[max(0, place - 4) : place]
        for word in reversed(before):
            for name in DATE_WORDS.get(word, ()):
                if item.field(name) is not None:
                    return name
            stem = re.sub(r"(ed|ing|ies|s|y)$", "", word)
            if len(stem) < 4 or word in STOP:  # noqa: PLR2004 - too short to tell
                continue
            dates = [entry for entry in item.fields if entry.type in ("date", "datetime")]
            named = [entry.name for entry in dates if any(part.startswith(stem) for part in words_of(entry.name))]
            if named and not self._search.objects_named(word):
                return min(named, key=len)
        default = "CloseDate" if item.name == "Opportunity" else "CreatedDate"
        return default if item.field(default) is not None else None

    def _values(self, frame: Frame, filters: list[Filter], item: ObjectSchema, start: int, end: int) -> None:
        """Words that are values of a picklist: `closed won opportunities`."""
        place = max(0, start)
        while place < end:
            step = 1
            for length in (4, 3, 2, 1):
                words = range(place, place + length)
                if place + length > end or any(at in self._used for at in words):
                    continue
                text = " ".join(self._words[at] for at in words)
                if text.lower() in STOP or (length == 1 and len(text) < 3):  # noqa: PLR2004
                    continue
                if text.lower() in ("open", "closed") and length == 1 and (entry := self._open(item)) is not None:
                    is_open = (text.lower() == "open") != self._is_negated(place)
                    filters.append(replace(entry, value="false" if is_open else "true"))
                    self._use(place, place + 1)
                    break
                found = self._picklist_value(item, text)
                if found is not None:
                    if self._is_negated(place):
                        found = replace(found, operator="!=")
                    filters.append(found)
                    self._use_near(place, "industry", "stage", "status", "priority", "type", "rating")
                    self._use(place, place + length)
                    step = length
                    break
            place += step

    def _open(self, item: ObjectSchema) -> Filter | None:
        closed = item.field("IsClosed")
        return Filter(item.name, closed.name, "=", "false", "phrase", 0.85) if closed is not None else None

    def _picklist_value(self, item: ObjectSchema, text: str) -> Filter | None:
        best: Filter | None = None
        for entry in self._grounder.ground(text, target=item):
            if entry.type == "picklist_value" and entry.evidence["object"] == item.name and entry.confidence >= 0.75:  # noqa: PLR2004
                name, operator, value = entry.filter.split(" ", 2)
                if best is None or entry.confidence > best.confidence:
                    best = Filter(item.name, name, operator, value, "picklist", entry.confidence)
        return best

    # Columns

    def _columns(self, frame: Frame) -> None:
        named = []
        place = 0
        while place < len(self._words):
            found = self._field_at(frame.object, place) if place not in self._used else None
            if found is not None and not found[3]:
                named.append(found[0].name)
                self._use(found[1], found[2])
                place = found[2]
            else:
                place += 1
        frame.columns = list(dict.fromkeys([*default_columns(frame.object), *named, *frame.columns]))

    # Fields

    def _field_after(self, item: ObjectSchema, place: int) -> tuple[Field, int, int, str] | None:
        """The next field within a few words."""
        for at in range(place, min(place + 4, len(self._words))):
            found = self._field_at(item, at)
            if found is not None:
                return found
        return None

    def _field_at(self, item: ObjectSchema, place: int) -> tuple[Field, int, int, str] | None:
        """A field that begins at a word: it, where it begins and ends, and its path."""
        if place >= len(self._words) or self._words[place].startswith("\0"):
            return None
        word = self._words[place]
        if "." in word:
            relationship, _, name = word.partition(".")
            link = item.by_relationship.get(relationship.lower())
            target = self._graph.get(link.reference_to[0]) if link and link.reference_to else None
            found = target.field(name) if target else None
            return (found, place, place + 1, f"{relationship}.") if found else None
        link = item.by_relationship.get(word.lower())
        if link is not None and place + 1 < len(self._words) and len(link.reference_to) == 1:
            target = self._graph.get(link.reference_to[0])
            inner = target.field(singular(self._lower[place + 1])) if target else None
            if inner is not None:
                return inner, place, place + 2, f"{link.relationship}."
        for length in (4, 3, 2, 1):
            if place + length > len(self._words):
                continue
            phrase = self._words[place : place + length]
            if not all(word[0].isalpha() for word in phrase):
                continue
            field_found = self._named_field(item, phrase)
            if field_found is not None:
                return field_found, place, place + length, ""
        return None

    def _named_field(self, item: ObjectSchema, words: Sequence[str]) -> Field | None:
        if len(words) == 1 and words[0].lower() in STOP:
            return None
        key = singular(squeezed(" ".join(words)))
        fields = self._fields.of(item)
        if key in fields:
            return fields[key]
        if len(words) == 1 and words[0].lower() in FIELD_WORDS:
            joined = squeezed("".join(FIELD_WORDS[words[0].lower()]))
            return fields.get(singular(joined))
        return None

    # Bookkeeping

    def _find(self, *words: str) -> int | None:
        for place in range(len(self._lower) - len(words) + 1):
            if tuple(self._lower[place : place + len(words)]) == words:
                return place
        return None

    def _use(self, start: int, end: int) -> None:
        self._used.update(range(start, end))

    def _use_words(self, *words: str) -> None:
        self._used.update(place for place, word in enumerate(self._lower) if word in words)

    def _use_near(self, place: int, *words: str) -> None:
        near = range(max(0, place - 4), min(len(self._lower), place + 3))
        self._used.update(at for at in near if self._lower[at] in words)

    def _text(self, place: int) -> str:
        return self._texts[int(self._words[place].strip("\0"))]
