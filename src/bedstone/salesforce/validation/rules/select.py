"""Rules about SELECT in a query without aggregates: columns, FIELDS(), child subqueries and TYPEOF."""

from bedstone.salesforce.graph.model import ObjectSchema, name_field
from bedstone.salesforce.graph.names import join_names
from bedstone.salesforce.soql.tree import Call, Column, Number, Path, Query, TypeOf, When
from bedstone.salesforce.validation.findings import Finding
from bedstone.salesforce.validation.query_facts import MAX_FIELDS_ROWS, fields_kind, names_few_ids
from bedstone.salesforce.validation.rule import Site, broken_by, corrected_to, rule
from bedstone.salesforce.validation.scope import is_polymorphic

MAX_SUBQUERIES = 20
MAX_LEVELS_DOWN = 4  # below the root, which is the first of five levels
MAX_LEVELS_DOWN_BEFORE = 1  # before NESTED_SINCE
NESTED_SINCE = 58  # version of the API
RESERVED_ALIAS = "group"  # the parser rejects every other reserved word


@rule("ALIAS_NOT_ALLOWED", "Only a grouped or aggregate query gives aliases to fields.", stops=False)
@broken_by("SELECT Name AccountName FROM Account LIMIT 1")
@corrected_to("SELECT Name FROM Account LIMIT 1")
def alias_not_allowed(column: Column, at: Site) -> Finding | None:
    if column.alias and isinstance(column.expression, Path):
        message = f'An alias on "{column.expression.name}" is only allowed in a grouped or aggregate query.'
        fix = at.findings.text[slice(*column.expression.span)]
        if at.scope.root.field(column.alias) is not None:  # a comma is missing
            fix = f"{fix}, {column.alias}"
        return Finding(message, column.span, fix)
    return None


@rule("DUPLICATE_FIELD", "A field is selected once.")
@broken_by("SELECT Id, Name, Id FROM Account LIMIT 1")
@corrected_to("SELECT Id, Name FROM Account LIMIT 1")
def duplicate_field(path: Path, at: Site) -> Finding | None:
    return Finding(f'Field "{path.name}" is selected twice.', path.span) if at.name in at.names else None


@rule("DUPLICATE_FIELD", "A function of a field that is selected too has an alias.", stops=False)
@broken_by("SELECT Amount, FORMAT(Amount) FROM Opportunity LIMIT 1")
@corrected_to("SELECT Amount, FORMAT(Amount) Formatted FROM Opportunity LIMIT 1")
def duplicate_function(call: Call, at: Site) -> Finding | None:
    if at.name not in at.names:
        return None
    return Finding(f'Field "{innermost(call).name}" is selected twice: give {call.name}() an alias.', call.span)


@rule("ALIAS_RESERVED", "An alias is not a word of SOQL.", stops=False)
@broken_by("SELECT COUNT(Id) group FROM Account")
@corrected_to("SELECT COUNT(Id) total FROM Account")
def alias_reserved(column: Column, _at: Site) -> Finding | None:
    if column.alias and column.alias.lower() == RESERVED_ALIAS:
        return Finding(f'"{column.alias}" cannot be an alias.', column.span)
    return None


@rule("FIELDS_KIND", "FIELDS() takes ALL, CUSTOM or STANDARD.")
@broken_by("SELECT FIELDS(NAMES) FROM Account LIMIT 10")
@corrected_to("SELECT FIELDS(STANDARD) FROM Account LIMIT 10")
def fields_unknown(call: Call, _at: Site) -> Finding | None:
    return Finding("FIELDS() takes ALL, CUSTOM or STANDARD.", call.span) if not fields_kind(call) else None


@rule("FIELDS_EMPTY", "FIELDS() selects at least one field.", stops=False)
@broken_by("SELECT FIELDS(CUSTOM) FROM Case LIMIT 10")
@corrected_to("SELECT FIELDS(STANDARD) FROM Case LIMIT 10")
def fields_empty(call: Call, at: Site) -> Finding | None:
    if not at.fields:
        return Finding(f"FIELDS({fields_kind(call)}) selects nothing on {at.scope.root.name}.", call.span)
    return None


@rule("FIELDS_LIMIT", "FIELDS(ALL) and FIELDS(CUSTOM) need LIMIT 200 or less, or a filter on ids.", stops=False)
@broken_by("SELECT FIELDS(ALL) FROM Account LIMIT 500")
@corrected_to("SELECT FIELDS(ALL) FROM Account LIMIT 200")
def fields_limit(call: Call, at: Site) -> Finding | None:
    kind = fields_kind(call)
    limit = at.query.limit.value if isinstance(at.query.limit, Number) else None
    is_bounded = (limit is not None and limit <= MAX_FIELDS_ROWS) or names_few_ids(at.query.where)
    if kind != "STANDARD" and not is_bounded:
        return Finding(f"FIELDS({kind}) needs LIMIT {MAX_FIELDS_ROWS} or less.", call.span)
    return None


@rule("DUPLICATE_FIELD", "FIELDS() does not select a field that is named too.", stops=False)
@broken_by("SELECT Name, FIELDS(STANDARD) FROM Account LIMIT 1")
@corrected_to("SELECT FIELDS(STANDARD) FROM Account LIMIT 1")
def fields_duplicate(call: Call, at: Site) -> Finding | None:
    name = next((name for name in at.fields if name in at.names), None)
    return Finding(f'Field "{name}" is selected twice.', call.span) if name is not None else None


@rule("DUPLICATE_FIELD", "A child relationship is selected once.", stops=False)
@broken_by("SELECT Id, (SELECT Id FROM Contacts), (SELECT Email FROM Contacts) FROM Account LIMIT 1")
@corrected_to("SELECT Id, (SELECT Id, Email FROM Contacts) FROM Account LIMIT 1")
def duplicate_children(child: Query, at: Site) -> Finding | None:
    relationship = child.sources[0].path.parts[-1].lower()
    if relationship in at.children:
        return Finding(f'The children "{relationship}" are selected twice.', child.span)
    return None


@rule("DEPTH_DOWN", "A query has at most five levels of parents and children, its own included (two before API 58).")
@broken_by("SELECT Id" + ", (SELECT Id" * 5 + " FROM ChildAccounts)" * 5 + " FROM Account LIMIT 1")
@corrected_to("SELECT Id" + ", (SELECT Id" * 4 + " FROM ChildAccounts)" * 4 + " FROM Account LIMIT 1")
def depth_down(child: Query, at: Site) -> Finding | None:
    depth = at.depth + 1
    allowed = MAX_LEVELS_DOWN if at.api_version >= NESTED_SINCE else MAX_LEVELS_DOWN_BEFORE
    if depth > allowed:
        return Finding(f"Subqueries are nested {depth} levels; API {at.api_version} allows {allowed}.", child.span)
    return None


@rule("OFFSET_SUBQUERY", "OFFSET in a child subquery needs LIMIT 1 on the outer query.", stops=False)
@broken_by("SELECT Id, (SELECT Id FROM Contacts LIMIT 5 OFFSET 5) FROM Account LIMIT 10")
@corrected_to("SELECT Id, (SELECT Id FROM Contacts LIMIT 5 OFFSET 5) FROM Account LIMIT 1")
def offset_subquery(child: Query, at: Site) -> Finding | None:
    limit = at.query.limit
    if child.offset is not None and not (isinstance(limit, Number) and limit.value == 1):
        return Finding("OFFSET in a subquery needs LIMIT 1 on the outer query.", child.offset.span, clause="OFFSET")
    return None


@rule("AGGREGATE_IN_SUBQUERY", "A child subquery has no aggregates.")
@broken_by("SELECT Id, (SELECT COUNT(Id) FROM Contacts) FROM Account LIMIT 1")
@corrected_to("SELECT AccountId, COUNT(Id) FROM Contact GROUP BY AccountId")
def aggregate_in_subquery(query: Query, at: Site) -> Finding | None:
    return Finding("Aggregates are not allowed in a child subquery.", query.columns[0].span) if at.depth else None


@rule("TYPEOF_NOT_POLYMORPHIC", "TYPEOF is for relationships to several objects.")
@broken_by("SELECT TYPEOF Account WHEN Account THEN Name END FROM Contact LIMIT 1")
@corrected_to("SELECT Account.Name FROM Contact LIMIT 1")
def typeof_not_polymorphic(node: TypeOf, at: Site) -> Finding | None:
    if not is_polymorphic(at.link):
        name = at.scope.parts(node.relationship)[-1]
        message = f'"{name}" is not polymorphic; use {name}.{node.branches[0].fields[0].name}.'
        return Finding(message, node.span)
    return None


@rule("TYPEOF_TYPE", "A branch of TYPEOF names an object that the relationship can point to.")
@broken_by("SELECT TYPEOF What WHEN User THEN Name END FROM Task LIMIT 1")
@corrected_to("SELECT TYPEOF What WHEN Account THEN Name END FROM Task LIMIT 1")
def typeof_type(branch: When, at: Site) -> Finding | None:
    link = at.link
    if branch.type.lower() not in (name.lower() for name in link.reference_to):
        message = f'"{branch.type}" is not a type of "{link.relationship}". Types: {join_names(link.reference_to)}.'
        return Finding(message, branch.span)
    return None


@rule("TYPEOF_TYPE", "An object has one branch of TYPEOF.", stops=False)
@broken_by("SELECT TYPEOF What WHEN Account THEN Name WHEN Account THEN Phone END FROM Task LIMIT 1")
@corrected_to("SELECT TYPEOF What WHEN Account THEN Name, Phone END FROM Task LIMIT 1")
def typeof_repeated(node: TypeOf, _at: Site) -> Finding | None:
    if len({branch.type.lower() for branch in node.branches}) < len(node.branches):
        return Finding("A type stands in two branches of TYPEOF.", node.span)
    return None


@rule("TYPEOF_ELSE", "ELSE of TYPEOF selects fields of Name.")
@broken_by("SELECT TYPEOF What WHEN Account THEN Phone ELSE Industry END FROM Task LIMIT 1")
@corrected_to("SELECT TYPEOF What WHEN Account THEN Phone ELSE Name END FROM Task LIMIT 1")
def typeof_else(path: Path, _at: Site) -> Finding | None:
    if len(path.parts) > 1 or name_field(path.parts[-1]) is None:
        return Finding(f'"{path.name}" in ELSE does not exist on Name.', path.span)
    return None


@rule("TYPEOF_PATH", "A relationship is selected by TYPEOF or by a path, not by both.", stops=False)
@broken_by("SELECT What.Name, TYPEOF What WHEN Account THEN Phone END FROM Task LIMIT 1")
@corrected_to("SELECT TYPEOF What WHEN Account THEN Name, Phone ELSE Name END FROM Task LIMIT 1")
def typeof_path(node: TypeOf, at: Site) -> Finding | None:
    relationship = at.scope.key(node.relationship)
    if any(name.startswith(f"{relationship}.") for name in at.names):
        return Finding(f'"{relationship}" is selected by TYPEOF and by path; use one of them.', node.span)
    return None


@rule("TOO_MANY_SUBQUERIES", "A query has at most 20 child subqueries.")
@broken_by("SELECT Id" + ", (SELECT Id FROM Contacts)" * 21 + " FROM Account LIMIT 1")
@corrected_to("SELECT Id, (SELECT Id FROM Contacts) FROM Account LIMIT 1")
def too_many_subqueries(query: Query, _at: Site) -> Finding | None:
    count = sum(isinstance(column.expression, Query) for column in query.columns)
    if count > MAX_SUBQUERIES:
        return Finding(f"{count} child subqueries; {MAX_SUBQUERIES} is the maximum.", query.span)
    return None


FIELDS = (fields_unknown, fields_empty, fields_limit, fields_duplicate)
CHILD = (duplicate_children, depth_down, offset_subquery)


def innermost(call: Call) -> Path:
    """Return the field that a call is about, without the functions around it."""
    argument = call.arguments[0] if call.arguments else Path(())
    return innermost(argument) if isinstance(argument, Call) else argument if isinstance(argument, Path) else Path(())


def selected_fields(call: Call, item: ObjectSchema) -> list[str]:
    """Return the fields that FIELDS() selects, in lower case."""
    kind = fields_kind(call)
    return [field.name.lower() for field in item.fields if kind == "ALL" or field.is_custom == (kind == "CUSTOM")]
