"""Walk a query clause by clause, and run the rules of each node; the order of the walk is the order of the messages."""

from bedstone.salesforce.graph.model import ObjectSchema, SchemaGraph
from bedstone.salesforce.soql import write
from bedstone.salesforce.soql.tree import (
    Call,
    Choice,
    Column,
    Comparison,
    Condition,
    Distance,
    Expression,
    Membership,
    Number,
    Path,
    Query,
    SemiJoin,
    Source,
    Sum,
    Text,
    TypeOf,
    Value,
)
from bedstone.salesforce.validation import advice
from bedstone.salesforce.validation.corrections import correct_query, reveal
from bedstone.salesforce.validation.findings import MAX_MESSAGES, Findings, Report
from bedstone.salesforce.validation.parsing import (
    MAX_QUERY_CHARACTERS,
    Parsed,
    Reading,
    is_sql_word,
    parse_leniently,
    query_length,
)
from bedstone.salesforce.validation.query_facts import (
    TOOLING_OBJECTS,
    has_aggregate,
    is_call,
    is_date_function,
    iter_terms,
)
from bedstone.salesforce.validation.rule import Grouping, Site, run
from bedstone.salesforce.validation.rules import (
    from_,
    functions,
    grouping,
    literals,
    options,
    order_limit,
    select,
    semi_join,
    where,
)
from bedstone.salesforce.validation.scope import Ground, Resolved, Scope, find_object


def validate(text: str, graph: SchemaGraph, *, ground: Ground | None = None, version: int = 66) -> Report:
    """Check a query. `ground` explains an unknown name that is a value; `version` is the API version of the org."""
    findings = Findings(text)
    if len(text) > MAX_QUERY_CHARACTERS:
        query_length.run(text, Reading(findings))
        return Report(False, findings.messages)
    walker = Walker(graph, ground, version)
    parsed = parse_leniently(text, findings)
    if parsed is None:
        return Report(False, findings.messages, correct_query(findings, walker.walk)[0])
    if not graph.objects:
        findings.schema_unknown("No schema is synced: only the syntax was checked.")
    walker.walk(parsed, findings)
    if findings.is_valid:
        return Report(True, findings.messages)
    corrected, hidden = correct_query(findings, walker.walk)
    messages = [*findings.messages, *reveal(hidden, findings.messages)]
    return Report(False, messages[:MAX_MESSAGES], corrected)


class Walker:
    """Checks one statement at a time; subqueries get a site of their own."""

    _findings: Findings
    _unquoted: frozenset[int]
    _semi_joins: int

    def __init__(self, graph: SchemaGraph, ground: Ground | None, version: int) -> None:
        self._graph = graph
        self._ground = ground
        self._version = version

    def walk(self, parsed: Parsed, findings: Findings) -> None:
        """Report what is wrong with a statement."""
        self._findings, self._unquoted, self._semi_joins = findings, parsed.unquoted_positions, 0
        query = parsed.query
        at = self._enter(query, query.sources)
        if at is not None:
            self._query(at)
            advice.no_limit.run(query, at)

    def _enter(self, query: Query, sources: tuple[Source, ...], outer: Site | None = None) -> Site | None:
        """Open the site of a FROM that names an object, if the object exists."""
        item = find_object(sources[0], self._graph, self._findings, self._ground)
        if item is None:
            return None
        at = self._site(query, item, outer)
        at.clause = "FROM"
        from_.object_not_queryable.run(sources[0], at)
        at.scope.add_sources(sources)
        return at

    def _site(self, query: Query, item: ObjectSchema, outer: Site | None) -> Site:
        scope = Scope(self._graph, self._findings, item, self._ground)
        depth = 0 if outer is None else outer.depth + 1
        return Site(query, scope, self._findings, depth, self._version, self._unquoted, outer)

    def _query(self, at: Site) -> None:
        query = at.query
        self._group_by(at)
        at.is_aggregate = at.grouping.is_grouped or has_aggregate(*[column.expression for column in query.columns])
        at.clause = "SELECT"
        if not at.is_aggregate:
            self._columns(at)
        elif select.aggregate_in_subquery.run(query, at):
            self._aggregate_columns(at)
        else:
            return
        if query.where is not None:
            self._condition(query.where, at)
        if query.having is not None:
            self._having(query.having, at)
        self._order_by(at)
        self._rows(at)
        self._options(at)

    # SELECT

    def _columns(self, at: Site) -> None:
        typeofs: dict[str, TypeOf] = {}
        for column in at.query.columns:
            expression = column.expression
            if isinstance(expression, Path):
                self._field(column, expression, at)
            elif isinstance(expression, Query):
                self._child(expression, at)
            elif isinstance(expression, TypeOf):
                typeofs[at.scope.key(expression.relationship)] = expression
                self._typeof(expression, at)
            elif isinstance(expression, Call) and is_call(expression, "fields"):
                at.fields = select.selected_fields(expression, at.scope.root)
                if run(select.FIELDS, expression, at):
                    at.names.update(at.fields)
            else:
                self._function_column(column, expression, at)
        for node in typeofs.values():
            select.typeof_path.run(node, at)
        if at.children:
            select.too_many_subqueries.run(at.query, at)

    def _function_column(self, column: Column, expression: Call | Distance, at: Site) -> None:
        found = self._resolve(expression, at)
        functions.date_function_group.run(expression, at)
        select.alias_reserved.run(column, at)
        if found is not None and column.alias is None and isinstance(expression, Call):
            at.name = at.scope.key(select.innermost(expression))
            select.duplicate_function.run(expression, at)
            at.names.add(at.name)

    def _field(self, column: Column, path: Path, at: Site) -> None:
        if column.alias and is_sql_word(path) and at.scope.root.field(path.name) is None:
            return  # reported by the parser
        found = at.scope.resolve(path, at.clause)
        if column.alias:
            select.alias_not_allowed.run(column, at)
        at.name = at.scope.key(path)
        if found is not None:
            select.duplicate_field.run(path, at)
        at.names.add(at.name)

    def _child(self, child: Query, at: Site) -> None:
        source = child.sources[0]
        is_sound = run(select.CHILD, child, at)
        at.children |= {source.path.parts[-1].lower()}
        item = at.scope.find_child(source) if is_sound else None
        if item is not None:
            inner = self._site(child, item, at)
            inner.scope.add_sources(child.sources)
            self._query(inner)

    def _typeof(self, node: TypeOf, at: Site) -> None:
        link = at.scope.find_typeof(node)
        if link is None:
            return
        at.link = link
        if not select.typeof_not_polymorphic.run(node, at):
            return
        for branch in node.branches:
            item = self._graph.get(branch.type) if select.typeof_type.run(branch, at) else None
            if item is not None:
                scope = Scope(self._graph, self._findings, item, self._ground, {item.name.lower(): ()})
                for path in branch.fields:
                    scope.resolve(path, "TYPEOF")
        select.typeof_repeated.run(node, at)
        for path in node.otherwise or ():
            select.typeof_else.run(path, at)

    # Functions

    def _resolve(self, expression: Expression, at: Site) -> Resolved | None:
        """Return what an expression gives, or None after reporting what is wrong."""
        if isinstance(expression, Path):
            return at.scope.resolve(expression, at.clause)
        if isinstance(expression, Distance):
            return self._distance(expression, at)
        return self._call(expression, at)

    def _call(self, call: Call, at: Site) -> Resolved | None:
        name = call.name.lower()
        rules = functions.PLACES.get(name, functions.UNKNOWN)
        if rules and not run(rules, call, at):
            return None
        if not call.arguments:
            return functions.NUMBER if name == "count" else None
        argument = call.arguments[0]
        if isinstance(argument, Call) and is_call(argument, "converttimezone") and is_date_function(call):
            argument = argument.arguments[0] if argument.arguments else argument
        found = self._resolve(argument, at)
        if found is None:
            return None
        at.argument = found
        return functions.result_of(name, found) if run(functions.ARGUMENTS[name], call, at) else None

    def _distance(self, node: Distance, at: Site) -> Resolved | None:
        found = at.scope.resolve(node.field, at.clause)
        at.argument = found or functions.LOCATION
        return functions.NUMBER if functions.distance_form.run(node, at) and found is not None else None

    # WHERE

    def _condition(self, condition: Condition, at: Site) -> None:
        at.clause = "WHERE"
        for term, junction in iter_terms(condition):
            at.junction = junction
            self._term(term, at)

    def _term(self, term: Comparison | Membership | Choice, at: Site) -> None:
        if isinstance(term, Comparison):
            self._comparison(term, at)
        elif isinstance(term, Choice):
            self._choice(term, at)
        elif isinstance(term.values, SemiJoin):
            self._semi_join(term, term.values, at)
        else:
            self._membership(term, at)

    def _resolve_left(self, expression: Expression | Sum, at: Site) -> Resolved | None:
        """Return what stands on the left side of an operator, or None after reporting what is wrong."""
        if isinstance(expression, Sum):
            where.calculation.run(expression, at)
            return None
        if isinstance(expression, Call) and not run(where.CALL[at.clause], expression, at):
            return None
        found = self._resolve(expression, at)
        if found is None:
            return None
        at.left = found
        return found if not isinstance(expression, Path) or run(where.FIELD, expression, at) else None

    def _comparison(self, node: Comparison, at: Site) -> None:
        found = self._resolve_left(node.left, at)
        if found is None:
            return
        if isinstance(node.left, Distance) and not where.distance_operator.run(node, at):
            return
        if not run(where.BY_OPERATOR.get(node.operator, ()), node, at) or node.operator == "LIKE":
            return
        if not isinstance(node.left, Path) and not self._function(node, found, at):
            return
        at.operator = node.operator
        self._value(node.right, at)
        run(advice.BY_OPERATOR.get(node.operator, ()), node, at)

    def _function(self, node: Comparison, found: Resolved, at: Site) -> bool:
        """Check what is compared with the result of a function."""
        at.left = functions.with_name(found, node.left)
        if is_date_function(node.left):
            at.name = write(node.left)
            return where.date_part_value.run(node.right, at)
        return where.money_compared.run(node, at)

    def _value(self, value: Value, at: Site) -> None:
        if not isinstance(value, Text):
            run(literals.BY_TYPE.get(type(value), ()), value, at)
        elif run(literals.TEXT, value, at):
            if at.left.field.type in literals.PICKLISTS:
                self._picklist(value, at)
            elif rules := literals.text_rules(at.left.field):
                run(rules, value, at)

    def _picklist(self, value: Text, at: Site) -> None:
        for part in literals.picklist_parts(value, at.left.field):
            literals.picklist_value.run(part, at)

    def _membership(self, node: Membership, at: Site) -> None:
        found = self._resolve_left(node.left, at)
        if found is None or not isinstance(node.values, tuple):
            return
        at.left, at.operator = functions.with_name(found, node.left), "="
        is_date_part = is_date_function(node.left)
        if isinstance(node.left, Call):
            at.name = f"{node.left.name}()"
        for value in node.values:
            if not is_date_part or where.date_part_value.run(value, at):
                self._value(value, at)
        if isinstance(node.left, Distance):
            where.distance_operator.run(node, at)
        if node.negated:
            advice.negative_filter.run(node, at)

    def _choice(self, node: Choice, at: Site) -> None:
        if self._resolve_left(node.left, at) is None or not where.operator_type.run(node, at):
            return
        at.operator = node.operator
        for value in node.values:
            if where.choice_value.run(value, at) and isinstance(value, Text):
                self._picklist(value, at)

    def _semi_join(self, node: Membership, inner: SemiJoin, at: Site) -> None:
        at.semi_joins = self._semi_joins + 1
        if not run(semi_join.PLACE, node, at):
            return
        self._semi_joins = at.semi_joins
        has_left = self._resolve_left(node.left, at) is not None and semi_join.left_side.run(node, at)
        within = self._enter(at.query, inner.sources, at)
        if within is None:
            return
        within.clause = "WHERE"
        run(semi_join.OBJECT, inner, within)
        within.clause = "SELECT"
        selected = self._resolve(inner.field, within)
        within.clause = "WHERE"
        if selected is not None:
            within.left = selected
            if semi_join.selected_field.run(inner, within) and has_left:
                semi_join.target.run(inner, within)
        if inner.where is not None:
            self._condition(inner.where, within)

    # GROUP BY, HAVING, ORDER BY

    def _group_by(self, at: Site) -> None:
        node = at.query.group_by
        if node is None:
            return
        at.clause = "GROUP BY"
        keys = set()
        for expression in node.expressions:
            if has_aggregate(expression):
                grouping.group_aggregate.run(expression, at)
            else:
                at.left = self._resolve(expression, at) or functions.NUMBER
                grouping.not_groupable.run(expression, at)
                keys.add(at.scope.key(expression))
        at.grouping = Grouping(frozenset(keys), node.kind, is_grouped=True)
        if node.kind:
            grouping.rollup_size.run(node, at)

    def _aggregate_columns(self, at: Site) -> None:
        for column in at.query.columns:
            expression = column.expression
            if isinstance(expression, Query):
                grouping.aggregate_subquery.run(column, at)
            elif isinstance(expression, TypeOf):
                grouping.typeof_aggregate.run(column, at)
            else:
                self._aggregate_column(column, expression, at)
        grouping.count_grouped.run(at.query, at)

    def _aggregate_column(self, column: Column, expression: Expression, at: Site) -> None:
        found = None
        name = expression.name.lower() if isinstance(expression, Call) else ""
        if name == "fields":
            grouping.fields_aggregate.run(column, at)
            return
        if name == "grouping":
            run(grouping.GROUPING, expression, at)
        else:
            found = self._resolve(expression, at)
            if found is not None and not at.is_grouped(expression):
                run(grouping.UNGROUPED, expression, at)
        if column.alias:
            select.alias_reserved.run(column, at)
            at.name = column.alias
        elif found is not None and isinstance(expression, Path):
            at.name = found.field.name
        else:
            at.name = f"expr{at.unnamed}"
            at.unnamed += 1
        grouping.duplicate_alias.run(column, at)
        at.names.add(at.name.lower())

    def _having(self, condition: Condition, at: Site) -> None:
        at.clause = "HAVING"
        for term, _ in iter_terms(condition):
            left = term.left
            if isinstance(term, Membership) and isinstance(term.values, SemiJoin):
                semi_join.in_having.run(term, at)
                continue
            if is_call(left, "grouping"):
                run(grouping.GROUPING, left, at)
            elif isinstance(left, Path | Call) and not at.is_grouped(left):
                if self._resolve(left, at) is not None:
                    grouping.having_field.run(left, at)
                continue
            self._term(term, at)

    def _order_by(self, at: Site) -> None:
        at.clause = "ORDER BY"
        for order in at.query.order_by:
            expression = order.expression
            if isinstance(expression, Call) and not functions.function_place.run(expression, at):
                continue
            if is_call(expression, "grouping"):
                run(grouping.GROUPING, expression, at)
                continue
            found = self._resolve(expression, at)
            if found is not None:
                at.left = found
                run(order_limit.ORDER, expression, at)

    # LIMIT, OFFSET, USING, WITH

    def _rows(self, at: Site) -> None:
        parts = [part for part in (("LIMIT", at.query.limit), ("OFFSET", at.query.offset)) if part[1] is not None]
        for clause, part in parts:
            at.clause = clause
            if isinstance(part, Number):
                run(order_limit.BY_CLAUSE[clause], part, at)
        for clause, part in parts if at.is_aggregate else ():
            at.clause = clause
            order_limit.aggregate_limit.run(part, at)

    def _options(self, at: Site) -> None:
        query = at.query
        at.clause = "USING SCOPE"
        for using in query.sources[0].using:
            from_.scope_unknown.run(using, at)
        at.clause = "WITH"
        for option in query.options:
            run(options.WITH, option, at)
        name = at.scope.root.name.lower()
        if name in where.REQUIRED_FILTERS:
            where.required_filter.run(query, at)
        elif name in TOOLING_OBJECTS:
            for clause in options.tooling_clauses(query):
                at.clause = clause
                options.tooling_limits.run(query, at)
        if at.scope.parents:
            from_.too_many_parents.run(query, at)
