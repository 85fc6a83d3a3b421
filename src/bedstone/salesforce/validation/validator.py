"""Every clause of a query against every rule, on the tree alone: what stands inside quotes is never taken for code."""

import re
from dataclasses import dataclass, field, replace

from bedstone.salesforce.graph.categories import namespace_of
from bedstone.salesforce.graph.model import (
    ID_TYPES,
    NUMBER_TYPES,
    TEXT_TYPES,
    Field,
    ObjectSchema,
    SchemaGraph,
    name_field,
)
from bedstone.salesforce.graph.names import listed, suggest
from bedstone.salesforce.soql import SyntaxProblem, parse_soql, write
from bedstone.salesforce.soql.tree import (
    Bind,
    Call,
    Choice,
    Column,
    Comparison,
    Condition,
    DataCategories,
    DateLiteral,
    Distance,
    Expression,
    Geolocation,
    Membership,
    Money,
    Null,
    Number,
    Path,
    Query,
    SemiJoin,
    Source,
    Span,
    Sum,
    Text,
    TypeOf,
)
from bedstone.salesforce.validation.findings import MOST_MESSAGES, Finding, Findings, Report, edited
from bedstone.salesforce.validation.scope import (
    MOST_PARENTS,
    Grounding,
    Resolved,
    Scope,
    is_polymorphic,
    suggest_object,
)
from bedstone.salesforce.validation.syntax import read
from bedstone.salesforce.validation.tree_facts import (
    AGGREGATES,
    MOST_FIELDS_ROWS,
    filters_on,
    has_aggregate,
    is_bare_count,
    is_plain,
    names_few_ids,
    terms_of,
)
from bedstone.salesforce.validation.values import Values

LONGEST_QUERY, MOST_OFFSET, MOST_SUBQUERIES, MOST_SEMI_JOINS = 100_000, 2_000, 20, 2
DEEPEST_DOWN, DEEPEST_DOWN_BEFORE, NESTED_SINCE, PASSES = 5, 1, 58, 3
MOST_LIMIT = 2**31 - 1
UNNAMED = "\0"
LABELLED = frozenset({"picklist", "multipicklist", "combobox"})
MOST_ROLLUP, MOST_CATEGORIES = 3, 3
DATE_FUNCTIONS = frozenset(
    "calendar_month calendar_quarter calendar_year day_in_month day_in_week day_in_year day_only fiscal_month "  # noqa: SIM905
    "fiscal_quarter fiscal_year hour_in_day week_in_month week_in_year".split()
)
SHOWN_ONLY = frozenset({"format", "convertcurrency"})
SHOWING = frozenset({"format", "tolabel", "convertcurrency"})
FUNCTIONS = {
    name.lower(): name
    for name in (
        *("AVG", "COUNT", "COUNT_DISTINCT", "MIN", "MAX", "SUM", "GROUPING", "FORMAT", "toLabel", "convertCurrency"),
        *("convertTimezone", "FIELDS", "DISTANCE", "GEOLOCATION"),
        *(name.upper() for name in DATE_FUNCTIONS),
    )
}
ALIAS_RESERVED = frozenset(
    "and asc desc excludes first from group having in includes last like limit not null nulls or select using where "  # noqa: SIM905
    "with".split()
)
NO_SEMI_JOIN = frozenset({"activityhistory", "attachment", "event", "note", "openactivity", "task"})
NOT_AGGREGATED = frozenset(
    {"boolean", "time", "base64", "address", "location", "multipicklist", "encryptedstring", "anyType"}
)
REQUIRED_FILTERS = {
    "contentdocumentlink": ("Id", "ContentDocumentId", "LinkedEntityId"),
    "vote": ("ParentId", "Parent.Type", "Id"),
}
TOOLING = frozenset(
    "entitydefinition fielddefinition entityparticle publisher relationshipinfo searchlayout standardaction "  # noqa: SIM905
    "userentityaccess userfieldaccess".split()
)
IN_APEX_ONLY = frozenset({"security_enforced", "user_mode", "system_mode"})
NUMBER_FIELD = Field("", "", "double")
DATE_FIELD = Field("", "", "date")
TEXT_FIELD = Field("", "", "string")


def validate(text: str, graph: SchemaGraph, *, ground: Grounding | None = None, version: int = 66) -> Report:
    """Check a query. `ground` says of an unknown name what value it is; `version` is the org's API."""
    findings = Findings(text)
    if len(text) > LONGEST_QUERY:
        message = f"The query has {len(text):,} characters; {LONGEST_QUERY:,} is the maximum."
        findings.error("QUERY_LENGTH", message, "", (0, 0))
        return Report(False, findings.messages)
    found = read(text, findings)
    if found is None:
        corrected, _ = _mended(findings, graph, ground, version)
        return Report(False, findings.messages, corrected)
    if not graph.objects:
        findings.info("SCHEMA_UNKNOWN", "No schema is synced: only the syntax was checked.")
    unquoted = {item.span[0] for item in found.deviations if item.code == "LITERAL_UNQUOTED"}
    _Check(findings, graph, ground, version, unquoted).root(found.query)
    valid = findings.is_valid
    if valid:
        return Report(valid, findings.messages)
    corrected, hidden = _mended(findings, graph, ground, version)
    # What only shows once names are right is said too, where the first of them stands.
    first = findings.messages[0]
    told = {item.message for item in findings.messages}
    later = [
        replace(item, line=first.line, column=first.column, message=f"With that corrected: {item.message}")
        for item in hidden
        if item.message not in told
    ]
    return Report(valid, [*findings.messages, *later][:MOST_MESSAGES], corrected)


def _mended(
    findings: Findings, graph: SchemaGraph, ground: Grounding | None, version: int
) -> tuple[str | None, list[Finding]]:
    """The query with every correction, if nothing is wrong with it then; else the errors that showed on the way."""
    hidden: list[Finding] = []
    for _ in range(PASSES):
        if not findings.is_mendable or findings.is_valid:
            return None, hidden
        text = edited(findings.text, findings.edits.items()).strip()
        found = read(text, Findings(text))
        if found is None:
            return None, hidden
        if found.deviations and not any(item.code == "LITERAL_UNQUOTED" for item in found.deviations):
            text = write(found.query)
        if text == findings.text:
            return None, hidden
        findings = Findings(text)
        checked = read(text, findings)
        if checked is None:
            continue
        unquoted = {item.span[0] for item in checked.deviations if item.code == "LITERAL_UNQUOTED"}
        _Check(findings, graph, ground, version, unquoted).root(checked.query)
        if findings.is_valid:
            try:
                parse_soql(text)
            except SyntaxProblem:
                return None, hidden
            return text, []
        hidden += [item for item in findings.messages if item.type == "error"]
    return None, hidden


@dataclass
class _Group:
    """What an aggregate query groups by."""

    keys: set[str] = field(default_factory=set)
    kind: str = ""
    is_grouped: bool = False


class _Check:
    """One query; subqueries are checked by the same rules in scopes of their own."""

    def __init__(
        self, findings: Findings, graph: SchemaGraph, ground: Grounding | None, version: int, unquoted: set[int]
    ) -> None:
        self._findings = findings
        self._graph = graph
        self._ground = ground
        self._version = version
        self._values = Values(findings, graph, unquoted)
        self._semi_joins = 0

    # The query as a whole

    def root(self, query: Query) -> None:
        """The outermost query."""
        scope = self._scope(query.sources)
        if scope is not None:
            self._query(query, scope, depth=0)
            self._advise(query, scope)

    def _scope(self, sources: tuple[Source, ...]) -> Scope | None:
        first = sources[0]
        item = self._graph.get(first.name)
        if item is None:
            if self._graph.objects:
                self._unknown_object(first)
            return None
        if not item.queryable:
            self._error("OBJECT_NOT_QUERYABLE", f'Object "{item.name}" cannot be queried.', "FROM", first.path.span)
        scope = Scope(self._graph, self._findings, item, self._ground)
        scope.add_sources(sources)
        return scope

    def _unknown_object(self, source: Source) -> None:
        span = source.path.span
        if source.name in self._graph.problems or source.name.lower() in self._graph.unsynced:
            self._findings.info("SCHEMA_UNKNOWN", f"{source.name} is not synced: only the syntax was checked.")
            return
        found = suggest_object(source.name, self._graph)
        if not found.certain and self._ground is not None:
            nobody = ObjectSchema(source.name, source.name, source.name, ())
            if (hint := self._ground(source.name, nobody)) is not None:
                self._error("HALLUCINATED_ENTITY", hint, "FROM", span)
                return
        meant = f' Did you mean "{found.names[0]}"?' if found else ""
        message = f'Object "{source.name}" does not exist in this org.{meant}'
        self._findings.error("OBJECT_UNKNOWN", message, "FROM", span, found.certain)
        if found.certain:
            self._findings.name_corrected(source.name, found.certain, "this org", "FROM", span)

    def _query(self, query: Query, scope: Scope, *, depth: int) -> None:
        group = self._group(query, scope)
        is_aggregate = group.is_grouped or any(has_aggregate(column.expression) for column in query.columns)
        if is_aggregate and depth:
            message = "Aggregates are not allowed in a child subquery."
            self._error("AGGREGATE_IN_SUBQUERY", message, "SELECT", query.columns[0].span)
            return
        if is_aggregate:
            self._aggregate_columns(query, scope, group)
        else:
            self._columns(query, scope, depth)
        if query.where is not None:
            self._condition(query.where, scope, "WHERE", nested=depth > 0)
        if query.having is not None:
            self._having(query.having, scope, group)
        self._orders(query, scope, group, is_aggregate=is_aggregate)
        self._limits(query, group, is_aggregate=is_aggregate)
        self._sources_and_options(query, scope, depth)
        if len(scope.parents) > MOST_PARENTS:
            message = f"{len(scope.parents)} parent relationships; {MOST_PARENTS} is the maximum."
            self._error("TOO_MANY_PARENTS", message, "SELECT", query.span)

    # SELECT

    def _columns(self, query: Query, scope: Scope, depth: int) -> None:
        seen: set[str] = set()
        typed: dict[str, Span] = {}
        selected: set[str] = set()
        children = 0
        for column in query.columns:
            expression = column.expression
            match expression:
                case Query():
                    children += 1
                    relationship = expression.sources[0].path.parts[-1].lower()
                    if relationship in selected:
                        message = f'The children "{relationship}" are selected twice.'
                        self._error("DUPLICATE_FIELD", message, "SELECT", expression.span)
                    selected.add(relationship)
                    self._child(expression, scope, depth + 1, query)
                case TypeOf():
                    typed[".".join(scope.parts(expression.relationship)).lower()] = expression.span
                    self._type_of(expression, scope, query)
                case Path():
                    self._plain_column(column, expression, scope, seen)
                case Call(name) if name.lower() == "fields":
                    self._fields(expression, query, scope, seen)
                case _:
                    self._shown(column, expression, scope, seen)
        for relationship, span in typed.items():
            if any(name.startswith(f"{relationship}.") for name in seen):
                message = f'"{relationship}" is selected by TYPEOF and by path; use one of them.'
                self._error("TYPEOF_PATH", message, "SELECT", span)
        if children > MOST_SUBQUERIES:
            message = f"{children} child subqueries; {MOST_SUBQUERIES} is the maximum."
            self._error("TOO_MANY_SUBQUERIES", message, "SELECT", query.span)

    def _plain_column(self, column: Column, path: Path, scope: Scope, seen: set[str]) -> None:
        if path.name.lower() in ("distinct", "top", "unique") and column.alias and scope.root.field(path.name) is None:
            return  # told as SQL
        found = scope.resolve(path, "SELECT")
        if column.alias:
            message = f'An alias on "{path.name}" is only allowed in a grouped or aggregate query.'
            written = self._findings.text[slice(*path.span)]
            if scope.root.field(column.alias) is not None:  # a comma is missing
                written = f"{written}, {column.alias}"
            self._error("ALIAS_NOT_ALLOWED", message, "SELECT", column.span, written)
        self._note_selected(".".join(scope.parts(path)).lower(), path, found, seen)

    def _note_selected(self, name: str, path: Path, found: Resolved | None, seen: set[str]) -> None:
        if name in seen and found is not None:
            self._error("DUPLICATE_FIELD", f'Field "{path.name}" is selected twice.', "SELECT", path.span)
        seen.add(name)

    def _fields(self, call: Call, query: Query, scope: Scope, seen: set[str]) -> None:
        kind = call.arguments[0].name.upper() if call.arguments and isinstance(call.arguments[0], Path) else ""
        if kind not in ("ALL", "CUSTOM", "STANDARD"):
            self._error("FIELDS_KIND", "FIELDS() takes ALL, CUSTOM or STANDARD.", "SELECT", call.span)
            return
        names = [
            item.name.lower() for item in scope.root.fields if kind == "ALL" or item.is_custom == (kind == "CUSTOM")
        ]
        if not names:
            self._error("FIELDS_EMPTY", f"FIELDS({kind}) selects nothing on {scope.root.name}.", "SELECT", call.span)
        limit = query.limit.value if isinstance(query.limit, Number) else None
        is_bounded = (limit is not None and limit <= MOST_FIELDS_ROWS) or names_few_ids(query.where)
        if kind != "STANDARD" and not is_bounded:
            message = f"FIELDS({kind}) needs LIMIT {MOST_FIELDS_ROWS} or less."
            self._error("FIELDS_LIMIT", message, "SELECT", call.span)
        twice = next((name for name in names if name in seen), None)
        if twice is not None:
            self._error("DUPLICATE_FIELD", f'Field "{twice}" is selected twice.', "SELECT", call.span)
        seen.update(names)

    def _shown(self, column: Column, expression: Expression, scope: Scope, seen: set[str]) -> None:
        """A function of a field in a plain query."""
        self._expression(expression, scope, "SELECT")
        if isinstance(expression, Call) and expression.name.lower() in DATE_FUNCTIONS:
            message = f"{expression.name}() in SELECT must also be in GROUP BY."
            self._error("DATE_FN_GROUP", message, "SELECT", expression.span)
        if column.alias and column.alias.lower() in ALIAS_RESERVED:
            self._error("ALIAS_RESERVED", f'"{column.alias}" cannot be an alias.', "SELECT", column.span)

    def _child(self, query: Query, scope: Scope, depth: int, outer: Query) -> None:
        allowed = DEEPEST_DOWN if self._version >= NESTED_SINCE else DEEPEST_DOWN_BEFORE
        source = query.sources[0]
        if depth > allowed:
            message = f"Subqueries are nested {depth} levels; API {self._version} allows {allowed}."
            self._error("DEPTH_DOWN", message, "SELECT", query.span)
            return
        if query.offset is not None and not (isinstance(outer.limit, Number) and outer.limit.value == 1):
            message = "OFFSET in a subquery needs LIMIT 1 on the outer query."
            self._error("OFFSET_SUBQUERY", message, "OFFSET", query.offset.span)
        parts = source.path.parts
        if len(parts) > 1 and parts[0].lower() in scope.names:
            parts = parts[1:]
        found = self._graph.child_object(scope.root, parts[-1]) if len(parts) == 1 else None
        if found is None:
            self._unknown_child(source, parts, scope)
            return
        _, item = found
        inner = Scope(self._graph, self._findings, item, self._ground)
        inner.add_sources(
            (Source(Path((item.name,), source.path.span), source.alias, (), source.span), *query.sources[1:])
        )
        self._query(query, inner, depth=depth)

    def _unknown_child(self, source: Source, parts: tuple[str, ...], scope: Scope) -> None:
        root = scope.root
        name = parts[-1]
        known = {str(child.relationship): child.object for child in root.children if child.relationship}
        if name.lower() in {key.lower() for key in known}:
            self._findings.info("SCHEMA_UNKNOWN", f"The object behind {name} was not synced.")
            return
        by_object = [key for key, child in known.items() if child.lower() == name.lower()]
        found = suggest(name, dict.fromkeys(known, ""))
        meant = by_object[0] if len(by_object) == 1 else (found.names[0] if found else None)
        certain = by_object[0] if len(by_object) == 1 else found.certain
        hint = f' Did you mean "{meant}"?' if meant else ""
        message = (
            f'{root.name} has no child relationship "{name}".{hint} '
            "The subquery must name the relationship, not the object."
        )
        span = (source.path.span[1] - len(name), source.path.span[1])
        self._findings.error("CHILD_UNKNOWN", message, "FROM", span, certain)
        if certain:
            self._findings.name_corrected(name, certain, root.name, "FROM", span)

    def _type_of(self, node: TypeOf, scope: Scope, query: Query) -> None:
        *parents, name = scope.parts(node.relationship)
        owner: ObjectSchema | str | None = scope.root
        if parents:
            owner = scope.owner_of(tuple(parents), node.relationship.span, "SELECT", node.relationship)
        if not isinstance(owner, ObjectSchema):
            return
        link = owner.by_relationship.get(name.lower())
        if link is None:
            known = sorted(
                str(item.relationship) for item in owner.fields if item.relationship and is_polymorphic(item)
            )
            message = f'{owner.name} has no parent relationship "{name}". With several types: {listed(known)}.'
            self._error("RELATIONSHIP_UNKNOWN", message, "SELECT", node.relationship.span)
            return
        if not is_polymorphic(link):
            message = f'"{name}" is not polymorphic; use {name}.{node.branches[0].fields[0].name}.'
            self._error("TYPEOF_NOT_POLYMORPHIC", message, "SELECT", node.span)
            return
        for branch in node.branches:
            self._branch(branch.type, branch.fields, link, branch.span)
        kinds = [branch.type.lower() for branch in node.branches]
        if len(set(kinds)) < len(kinds):
            self._error("TYPEOF_TYPE", "A type stands in two branches of TYPEOF.", "SELECT", node.span)
        for path in node.otherwise or ():
            if len(path.parts) > 1 or name_field(path.parts[-1]) is None:
                message = f'"{path.name}" in ELSE does not exist on Name.'
                self._error("TYPEOF_ELSE", message, "SELECT", path.span)

    def _branch(self, kind: str, fields: tuple[Path, ...], link: Field, span: Span) -> None:
        if kind.lower() not in (name.lower() for name in link.reference_to):
            message = f'"{kind}" is not a type of "{link.relationship}". Types: {listed(link.reference_to)}.'
            self._error("TYPEOF_TYPE", message, "SELECT", span)
            return
        item = self._graph.get(kind)
        if item is None:
            return
        inner = Scope(self._graph, self._findings, item, self._ground)
        inner.names[item.name.lower()] = ()
        for path in fields:
            inner.resolve(path, "TYPEOF")

    # Functions

    def _expression(self, expression: Expression, scope: Scope, clause: str) -> Resolved | None:
        """What an expression gives, or None after saying what is wrong."""
        match expression:
            case Path():
                return scope.resolve(expression, clause)
            case Distance():
                return self._distance(expression, scope, clause)
            case Call():
                return self._call(expression, scope, clause)

    def _call(self, call: Call, scope: Scope, clause: str) -> Resolved | None:  # noqa: PLR0911 - one for each kind
        name = call.name.lower()
        if name not in FUNCTIONS:
            found = suggest(call.name, dict.fromkeys(FUNCTIONS.values(), ""))
            meant = f" Did you mean {found.names[0]}?" if found else ""
            self._error("FUNCTION_UNKNOWN", f'Unknown function "{call.name}".{meant}', clause, call.span)
            return None
        if name in ("fields", "geolocation"):
            self._error("SYNTAX", f'"{call.name}" cannot stand here.', clause, call.span)
            return None
        if not call.arguments:
            return Resolved(NUMBER_FIELD, None) if name == "count" else None
        argument = call.arguments[0]
        if name == "converttimezone":
            message = "convertTimezone() only works inside a date function."
            self._error("CONVERT_TZ", message, clause, call.span)
            return None
        if name in DATE_FUNCTIONS:
            return self._date_function(call, argument, scope, clause)
        inner = self._expression(argument, scope, clause)
        if inner is None:
            return None
        if name in AGGREGATES:
            return self._aggregate(call, inner, clause)
        if name == "grouping":
            return Resolved(NUMBER_FIELD, None)
        wrong = (name == "tolabel" and not inner.field.choices and inner.field.type not in LABELLED) or (
            name == "convertcurrency" and inner.field.type != "currency"
        )
        if inner.field.type in ("address", "location") or wrong:
            message = f'{call.name}() cannot be used on {inner.field.type} field "{inner.field.name}".'
            self._error("FUNCTION_TYPE", message, clause, call.span)
            return None
        return inner if name != "format" else Resolved(TEXT_FIELD, inner.owner)

    def _date_function(self, call: Call, argument: Expression, scope: Scope, clause: str) -> Resolved | None:
        is_shifted = isinstance(argument, Call) and argument.name.lower() == "converttimezone"
        inner = argument.arguments[0] if is_shifted and isinstance(argument, Call) and argument.arguments else argument
        found = self._expression(inner, scope, clause)
        if found is None:
            return None
        kind = found.field.type
        needs_time = call.name.lower() in ("day_only", "hour_in_day")
        if kind not in ("date", "datetime") or (needs_time and kind != "datetime"):
            wanted = "datetime" if needs_time else "date or datetime"
            message = f'{call.name}() needs a {wanted} field; "{found.field.name}" is {kind}.'
            self._error("DATE_FN_TYPE", message, clause, call.span)
            return None
        return Resolved(DATE_FIELD if call.name.lower() == "day_only" else NUMBER_FIELD, None)

    def _aggregate(self, call: Call, inner: Resolved, clause: str) -> Resolved | None:
        name, item = call.name.lower(), inner.field
        if has_aggregate(call.arguments[0]):
            self._error("AGGREGATE_NESTED", f"{call.name}() cannot hold another aggregate.", clause, call.span)
            return None
        if inner.owner is not None and inner.owner.name.endswith("__x"):
            message = f"{call.name.upper()}() is not supported on external objects; COUNT() alone is."
            self._error("EXTERNAL_OBJECT", message, clause, call.span)
            return None
        if item.type in NOT_AGGREGATED or (name in ("sum", "avg") and item.type not in NUMBER_TYPES):
            message = f'{call.name.upper()}() cannot be used on {item.type} field "{item.name}".'
            self._error("AGGREGATE_TYPE", message, clause, call.span)
            return None
        return inner if name in ("min", "max") else Resolved(NUMBER_FIELD, None)

    def _distance(self, node: Distance, scope: Scope, clause: str) -> Resolved | None:
        found = scope.resolve(node.field, clause)
        is_formed = isinstance(node.point, Geolocation) and node.unit.lower() in ("mi", "km")
        if (found is not None and found.field.type not in ("location", "address")) or not is_formed:
            message = "DISTANCE() needs a location field first, then GEOLOCATION(), then 'mi' or 'km'."
            self._error("DISTANCE_FORM", message, clause, node.span)
            return None
        return Resolved(NUMBER_FIELD, None) if found is not None else None

    # WHERE

    def _condition(self, condition: Condition, scope: Scope, clause: str, *, nested: bool) -> None:
        for term, joint in terms_of(condition):
            match term:
                case Membership(values=SemiJoin() as inner):
                    self._semi_join(term, inner, scope, joint, nested=nested)
                case Membership():
                    self._membership(term, scope, clause)
                case Choice():
                    self._choice(term, scope, clause)
                case Comparison():
                    self._comparison(term, scope, clause)

    def _left(self, expression: Expression | Sum, scope: Scope, clause: str) -> Resolved | None:
        if isinstance(expression, Sum):
            self._error("CALCULATION", "SOQL cannot calculate in WHERE.", clause, expression.span)
            return None
        if isinstance(expression, Call):
            if clause == "WHERE" and has_aggregate(expression):
                message = f"{expression.name}() belongs in HAVING, not in WHERE."
                self._error("AGGREGATE_IN_WHERE", message, clause, expression.span)
                return None
            if expression.name.lower() in SHOWN_ONLY:
                message = f"{expression.name}() cannot be used in {clause}."
                self._error("FUNCTION_PLACE", message, clause, expression.span)
                return None
            if expression.name.lower() == "grouping" and clause == "WHERE":
                self._error("GROUPING_USE", "GROUPING() needs ROLLUP or CUBE.", clause, expression.span)
                return None
        found = self._expression(expression, scope, clause)
        if found is not None and isinstance(expression, Path) and not self._check_filterable(found, expression, clause):
            return None
        return found

    def _check_filterable(self, found: Resolved, path: Path, clause: str) -> bool:
        item = found.field
        if item.type in ("address", "location"):
            parts = [other.name for other in found.owner.fields if other.compound == item.name] if found.owner else []
            message = (
                f'"{item.name}" is a compound field; filter on its parts such as '
                f"{listed(parts, 3) or 'its city'}, or with DISTANCE()."
            )
            self._error("ADDRESS_FILTER", message, clause, path.span)
            return False
        if not item.filterable:
            message = f'Field "{item.name}" ({item.type}) cannot be used in {clause}.'
            self._error("NOT_FILTERABLE", message, clause, path.span)
            return False
        if item.is_calculated:
            message = f'"{item.name}" is a formula; filtering on it is slow.'
            self._findings.warning("FORMULA_FILTER", message, clause, path.span)
        return True

    def _comparison(self, node: Comparison, scope: Scope, clause: str) -> None:
        found = self._left(node.left, scope, clause)
        if found is None:
            return
        item, operator = found.field, node.operator
        if isinstance(node.left, Distance) and operator not in ("<", ">"):
            self._error("DISTANCE_OPERATOR", "Only < and > are allowed with DISTANCE().", clause, node.span)
            return
        if operator == "LIKE":
            self._like(node, found, clause)
            return
        if operator in ("<", ">", "<=", ">=") and item.type in ID_TYPES | {"boolean"}:
            message = f'Operator {operator} cannot be used on {item.type} field "{item.name}".'
            self._error("OPERATOR_TYPE", message, clause, node.span)
            return
        is_date_function = isinstance(node.left, Call) and node.left.name.lower() in DATE_FUNCTIONS
        if is_date_function and isinstance(node.right, DateLiteral):
            message = f"{node.right.name} cannot be compared with {write(node.left)}; use a number."
            self._error("DATE_LITERAL_MISUSE", message, clause, node.right.span)
            return
        if isinstance(node.right, Money) and has_aggregate(node.left):
            message = "A currency with its code cannot be compared with an aggregate; write the number alone."
            self._error("LITERAL_TYPE", message, clause, node.right.span, node.right.amount)
            return
        self._values.check(_named(found, node.left), node.right, clause, operator)
        self._advise_term(node, clause)

    def _like(self, node: Comparison, found: Resolved, clause: str) -> None:
        item = found.field
        if item.type in ID_TYPES:
            name = f"{item.relationship}.Name" if item.relationship else "Name"
            corrected = None
            pattern = node.right.value if isinstance(node.right, Text) else ""
            if item.relationship and isinstance(node.left, Path) and not pattern.lstrip("%")[:1].isdigit():
                corrected = ".".join((*node.left.parts[:-1], name))
            message = f"\"{item.name}\" holds ids, not names. Use {name} LIKE '…'."
            self._error("LIKE_ON_ID", message, clause, node.left.span, corrected)
        elif found.owner is not None and found.owner.name.endswith("__x"):
            self._error("EXTERNAL_OBJECT", "LIKE is not supported on external objects.", clause, node.span)
        elif item.type not in TEXT_TYPES or item.type in ("multipicklist", "encryptedstring"):
            message = f'Operator LIKE cannot be used on {item.type} field "{item.name}".'
            self._error("OPERATOR_TYPE", message, clause, node.span)
        elif not isinstance(node.right, Text | Null | Bind):
            self._error("LITERAL_TYPE", "LIKE needs a text in quotes.", clause, node.right.span)
        elif isinstance(node.right, Text) and node.right.value.startswith(("%", "_")):
            message = f"LIKE '{node.right.value[:20]}' cannot use an index."
            self._findings.warning("LEADING_WILDCARD", message, clause, node.right.span)

    def _membership(self, node: Membership, scope: Scope, clause: str) -> None:
        found = self._left(node.left, scope, clause)
        if found is None or not isinstance(node.values, tuple):
            return
        for value in node.values:
            if (
                isinstance(node.left, Call)
                and isinstance(value, DateLiteral)
                and node.left.name.lower() in DATE_FUNCTIONS
            ):
                message = f"{value.name} cannot be compared with {node.left.name}(); use a number."
                self._error("DATE_LITERAL_MISUSE", message, clause, value.span)
                continue
            self._values.check(_named(found, node.left), value, clause)
        if isinstance(node.left, Distance):
            self._error("DISTANCE_OPERATOR", "Only < and > are allowed with DISTANCE().", clause, node.span)
        if node.negated:
            self._findings.warning("NEGATIVE_FILTER", "NOT IN alone is not selective.", clause, node.span)

    def _choice(self, node: Choice, scope: Scope, clause: str) -> None:
        found = self._left(node.left, scope, clause)
        if found is None:
            return
        if found.field.type != "multipicklist":
            message = f'Operator {node.operator} cannot be used on {found.field.type} field "{found.field.name}".'
            self._error("OPERATOR_TYPE", message, clause, node.span)
            return
        for value in node.values:
            if not isinstance(value, Text):
                if not isinstance(value, Bind):
                    self._error("LITERAL_TYPE", f"{node.operator} needs texts in quotes.", clause, value.span)
                continue
            for part in value.value.split(";"):
                self._values.picklist(found, part.strip(), value.span, clause)

    def _semi_join(self, node: Membership, inner: SemiJoin, scope: Scope, joint: str, *, nested: bool) -> None:
        span = node.span
        if nested:
            self._error("SEMIJOIN_NESTED", "A subquery with IN cannot be nested.", "WHERE", span)
            return
        if joint == "OR":
            self._error("SEMIJOIN_OR", "A subquery with IN cannot stand under OR.", "WHERE", span)
            return
        if joint:
            self._error("SEMIJOIN_NOT", "A subquery with IN cannot stand under NOT; use NOT IN.", "WHERE", span)
            return
        self._semi_joins += 1
        if self._semi_joins > MOST_SEMI_JOINS:
            self._error("SEMIJOIN_COUNT", "Only 2 subqueries with IN are allowed.", "WHERE", span)
        left = self._left(node.left, scope, "WHERE")
        if left is not None and (left.field.type not in ID_TYPES or not is_plain(node.left)):
            message = "The left side must be an id or reference field without a dot."
            self._error("SEMIJOIN_LEFT", message, "WHERE", node.left.span)
            left = None
        within = self._scope(inner.sources)
        if within is None:
            return
        if within.root.name.lower() in NO_SEMI_JOIN:
            message = f'"{within.root.name}" is not allowed in a subquery with IN.'
            self._error("SEMIJOIN_OBJECT", message, "WHERE", inner.sources[0].path.span)
        if within.root is scope.root:
            message = "The subquery cannot use the same object; filter directly instead."
            self._error("SEMIJOIN_SAME", message, "WHERE", inner.sources[0].path.span)
        selected = self._expression(inner.field, within, "SELECT")
        if selected is not None and (selected.field.type not in ID_TYPES or not is_plain(inner.field)):
            message = f'The subquery must select one id or reference field, not "{write(inner.field)}".'
            self._error("SEMIJOIN_FIELD", message, "WHERE", inner.field.span)
        elif selected is not None and left is not None:
            mine, theirs = _held(left, scope), _held(selected, within)
            if not mine & theirs:
                points = listed(sorted(theirs), 3)
                message = f'"{selected.field.name}" points to {points}, not to {listed(sorted(mine), 3)}.'
                self._error("SEMIJOIN_TARGET", message, "WHERE", inner.field.span)
        if inner.where is not None:
            self._condition(inner.where, within, "WHERE", nested=True)

    # GROUP BY, HAVING, ORDER BY

    def _group(self, query: Query, scope: Scope) -> _Group:
        if query.group_by is None:
            return _Group()
        node = query.group_by
        group = _Group(kind=node.kind, is_grouped=True)
        for expression in node.expressions:
            if has_aggregate(expression):
                message = f'"{write(expression)}" is an aggregate; it cannot be grouped.'
                self._error("NOT_GROUPABLE", message, "GROUP BY", expression.span)
                continue
            found = self._expression(expression, scope, "GROUP BY")
            if isinstance(expression, Distance):
                self._error("NOT_GROUPABLE", "DISTANCE() cannot be grouped.", "GROUP BY", expression.span)
            elif found is not None and isinstance(expression, Path) and not found.field.groupable:
                message = f'Field "{found.field.name}" ({found.field.type}) cannot be used in GROUP BY.'
                self._error("NOT_GROUPABLE", message, "GROUP BY", expression.span)
            group.keys.add(_key(expression, scope))
        if node.kind and len(node.expressions) > MOST_ROLLUP:
            message = f"{node.kind} takes at most {MOST_ROLLUP} fields and nothing outside it."
            self._error("ROLLUP_SIZE", message, "GROUP BY", node.span)
        return group

    def _aggregate_columns(self, query: Query, scope: Scope, group: _Group) -> None:
        names: set[str] = set()
        for column in query.columns:
            expression = column.expression
            if isinstance(expression, Query):
                message = "A child subquery cannot stand in an aggregate query."
                self._error("AGGREGATE_SUBQUERY", message, "SELECT", column.span)
                continue
            if isinstance(expression, TypeOf):
                message = "TYPEOF cannot be combined with aggregates."
                self._error("TYPEOF_AGGREGATE", message, "SELECT", column.span)
                continue
            self._aggregate_column(column, expression, scope, group, names)
        is_count = is_bare_count(query)
        if is_count and group.is_grouped:
            message = "COUNT() must be the only item and takes no alias; use COUNT(Id) instead."
            self._error("COUNT_ALONE", message, "SELECT", query.columns[0].span)

    def _aggregate_column(
        self, column: Column, expression: Expression, scope: Scope, group: _Group, names: set[str]
    ) -> None:
        if isinstance(expression, Call) and expression.name.lower() == "fields":
            message = "FIELDS() cannot be combined with aggregates."
            self._error("NOT_GROUPED", message, "SELECT", column.span)
            return
        if isinstance(expression, Call) and expression.name.lower() == "grouping":
            self._grouping(expression, scope, group)
            found: Resolved | None = Resolved(NUMBER_FIELD, None)
        else:
            found = self._expression(expression, scope, "SELECT")
            if found is not None:
                self._check_grouped(expression, scope, group)
        if column.alias and column.alias.lower() in ALIAS_RESERVED:
            self._error("ALIAS_RESERVED", f'"{column.alias}" cannot be an alias.', "SELECT", column.span)
        name = column.alias or (found.field.name if found is not None and isinstance(expression, Path) else None)
        if name is None:
            name = f"expr{sum(other.startswith(UNNAMED) for other in names)}"
            names.add(f"{UNNAMED}{name}")
        if name is not None:
            if name.lower() in names:
                message = f'Two columns would be named "{name}". Give one an alias.'
                self._error("DUPLICATE_ALIAS", message, "SELECT", column.span)
            names.add(name.lower())

    def _check_grouped(self, expression: Expression, scope: Scope, group: _Group) -> None:
        if has_aggregate(expression) or _key(expression, scope) in group.keys:
            return
        inner = expression.arguments[0] if isinstance(expression, Call) and expression.arguments else None
        is_date_function = isinstance(expression, Call) and expression.name.lower() in DATE_FUNCTIONS
        if inner is not None and not is_date_function and _key(inner, scope) in group.keys:
            return
        if isinstance(expression, Call) and is_date_function:
            message = f"{expression.name}() in SELECT must also be in GROUP BY."
            self._error("DATE_FN_GROUP", message, "SELECT", expression.span)
            return
        message = f'"{write(expression)}" is neither grouped nor aggregated. Add it to GROUP BY or aggregate it.'
        self._error("NOT_GROUPED", message, "SELECT", expression.span)

    def _grouping(self, call: Call, scope: Scope, group: _Group) -> None:
        if not group.kind:
            self._error("GROUPING_USE", "GROUPING() needs ROLLUP or CUBE.", "SELECT", call.span)
        elif call.arguments and _key(call.arguments[0], scope) not in group.keys:
            message = f'"{write(call.arguments[0])}" is not grouped.'
            self._error("NOT_GROUPED", message, "SELECT", call.span)

    def _having(self, condition: Condition, scope: Scope, group: _Group) -> None:
        for term, _ in terms_of(condition):
            left = term.left
            if isinstance(term, Membership) and isinstance(term.values, SemiJoin):
                message = "A subquery with IN cannot stand in HAVING."
                self._error("SEMIJOIN_HAVING", message, "HAVING", term.span)
                continue
            if isinstance(left, Call) and left.name.lower() == "grouping":
                self._grouping(left, scope, group)
            elif isinstance(left, Path | Call) and not has_aggregate(left) and _key(left, scope) not in group.keys:
                if self._expression(left, scope, "HAVING") is not None:
                    message = f'"{write(left)}" in HAVING is neither grouped nor aggregated.'
                    self._error("HAVING_FIELD", message, "HAVING", left.span)
                continue
            match term:
                case Membership():
                    self._membership(term, scope, "HAVING")
                case Choice():
                    self._choice(term, scope, "HAVING")
                case Comparison():
                    self._comparison(term, scope, "HAVING")

    def _orders(self, query: Query, scope: Scope, group: _Group, *, is_aggregate: bool) -> None:
        for order in query.order_by:
            expression = order.expression
            if isinstance(expression, Call) and expression.name.lower() in SHOWING:
                message = f"{expression.name}() cannot be used in ORDER BY."
                self._error("FUNCTION_PLACE", message, "ORDER BY", expression.span)
                continue
            if isinstance(expression, Call) and expression.name.lower() == "grouping":
                self._grouping(expression, scope, group)
                continue
            found = self._expression(expression, scope, "ORDER BY")
            if found is None:
                continue
            if is_aggregate:
                if not has_aggregate(expression) and _key(expression, scope) not in group.keys:
                    message = f'"{write(expression)}" in ORDER BY is neither grouped nor aggregated.'
                    self._error("ORDER_NOT_GROUPED", message, "ORDER BY", expression.span)
            elif has_aggregate(expression):
                message = f'"{write(expression)}" in ORDER BY needs a grouped query.'
                self._error("ORDER_NOT_GROUPED", message, "ORDER BY", expression.span)
            elif isinstance(expression, Path) and not found.field.sortable:
                message = f'Field "{found.field.name}" ({found.field.type}) cannot be used in ORDER BY.'
                self._error("NOT_SORTABLE", message, "ORDER BY", expression.span)

    # LIMIT, OFFSET, WITH, USING

    def _limits(self, query: Query, group: _Group, *, is_aggregate: bool) -> None:
        limit, offset = query.limit, query.offset
        if isinstance(limit, Number) and not 0 <= limit.value <= MOST_LIMIT:
            self._error("LIMIT_RANGE", "LIMIT must be 0 or more, and a number of rows.", "LIMIT", limit.span)
        if isinstance(offset, Number):
            if offset.value < 0:
                self._error("LIMIT_RANGE", "OFFSET must be 0 or more.", "OFFSET", offset.span)
            elif offset.value > MOST_OFFSET:
                message = f"OFFSET {offset.written[:20]} is above {MOST_OFFSET:,}."
                self._error("OFFSET_MAX", message, "OFFSET", offset.span)
        if is_aggregate and not group.is_grouped and not is_bare_count(query):
            for word, part in (("LIMIT", limit), ("OFFSET", offset)):
                if part is not None:
                    places = re.finditer(word, self._findings.text[: part.span[0]], re.IGNORECASE)
                    start = max((found.start() for found in places), default=part.span[0])
                    message = f"An aggregate without GROUP BY returns one row; remove {word}."
                    self._error("AGGREGATE_LIMIT", message, word, (start, part.span[1]), "")

    def _sources_and_options(self, query: Query, scope: Scope, depth: int) -> None:
        for using in query.sources[0].using:
            scopes = scope.root.scopes
            if depth:
                message = "USING SCOPE is not allowed in a child subquery."
                self._error("SCOPE_UNKNOWN", message, "USING SCOPE", using.span)
            elif using.kind != "SCOPE" or (scopes and using.name.lower() not in map(str.lower, scopes)):
                known = listed(scopes) or "none"
                message = f'Scope "{using.name}" is not supported by {scope.root.name}. Supported: {known}.'
                self._error("SCOPE_UNKNOWN", message, "USING SCOPE", using.span)
        for option in query.options:
            if isinstance(option, DataCategories):
                self._categories(option, query, scope)
            elif option.name.lower() in IN_APEX_ONLY:
                message = f'"WITH {option.name}" only works in Apex (it checks the user\'s rights). Remove it.'
                self._findings.warning("APEX_ONLY", message, "WITH", option.span)
            elif option.name.lower() not in ("recordvisibilitycontext", "userid"):
                self._error("WITH_UNKNOWN", f'"WITH {option.name}" is not known.', "WITH", option.span)
        name = scope.root.name.lower()
        if name in REQUIRED_FILTERS and not depth and not filters_on(query.where, REQUIRED_FILTERS[name], exactly=True):
            needed = listed(REQUIRED_FILTERS[name])
            message = f"{scope.root.name} must be filtered on {needed}."
            self._error("REQUIRED_FILTER", message, "WHERE", query.sources[0].span)
        if name in TOOLING:
            self._tooling(query, scope)

    def _categories(self, option: DataCategories, query: Query, scope: Scope) -> None:
        groups = [selection.group.lower() for selection in option.selections]
        is_article = scope.root.name.endswith("__kav") or scope.root.name == "KnowledgeArticleVersion"
        fits = is_article and len(groups) <= MOST_CATEGORIES and len(set(groups)) == len(groups)
        if not fits or not filters_on(query.where, ("PublishStatus", "Id")):
            message = (
                "WITH DATA CATEGORY needs a filter on PublishStatus (or Id), only AND, each group once, at most 3."
            )
            self._error("WITH_CATEGORY", message, "WITH", option.span)

    def _tooling(self, query: Query, scope: Scope) -> None:
        used = [
            word
            for word, part in (
                ("COUNT()", is_bare_count(query)),
                ("GROUP BY", query.group_by),
                ("LIMIT", query.limit),
                ("OFFSET", query.offset),
                ("OR", query.where is not None and any(joint == "OR" for _, joint in terms_of(query.where))),
            )
            if part
        ]
        for word in used:
            message = f"{word} is not supported on {scope.root.name}."
            self._error("TOOLING_LIMITS", message, word, query.span)

    # What runs, but should not

    def _advise(self, query: Query, scope: Scope) -> None:
        is_single = query.group_by is not None or any(has_aggregate(column.expression) for column in query.columns)
        is_bounded = query.limit is not None or is_single or names_few_ids(query.where)
        if not is_bounded and scope.root.name.lower() not in TOOLING and namespace_of(scope.root.name) != "Tooling":
            message = "No LIMIT: the query may return many rows."
            self._findings.warning("NO_LIMIT", message, "LIMIT", (0, 0))

    def _advise_term(self, node: Comparison, clause: str) -> None:
        if node.operator in ("!=", "<>") and clause == "WHERE" and not isinstance(node.right, Null):
            self._findings.warning("NEGATIVE_FILTER", f"{node.operator} alone is not selective.", clause, node.span)
        elif node.operator == "=" and isinstance(node.right, Null) and clause == "WHERE":
            self._findings.warning("NULL_FILTER", "= null cannot use an index.", clause, node.span)

    def _error(self, code: str, message: str, clause: str, span: Span, corrected: str | None = None) -> None:
        self._findings.error(code, message, clause, span, corrected)


def _key(expression: Expression, scope: Scope) -> str:
    """An expression whatever aliases it is written with."""
    if isinstance(expression, Path):
        return ".".join(scope.parts(expression)).lower()
    if isinstance(expression, Call):
        return f"{expression.name.lower()}({', '.join(_key(item, scope) for item in expression.arguments)})"
    return write(expression).lower()


def _held(found: Resolved, scope: Scope) -> set[str]:
    """The objects whose ids a field holds."""
    return set(found.field.reference_to) or {scope.root.name}


def _named(found: Resolved, left: object) -> Resolved:
    """A function's result under the function's name, for messages."""
    if found.field.name or not isinstance(left, Call | Distance):
        return found
    name = f"{left.name}()" if isinstance(left, Call) else "DISTANCE()"
    return Resolved(Field(name, name, found.field.type), None)
