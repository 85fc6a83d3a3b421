"""Every rule of the validator by its own example: the code, the sentence, the fix, and the corrected query."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from bedstone.salesforce import validation
from bedstone.salesforce.graph.model import ObjectSchema, SchemaGraph
from bedstone.salesforce.validation import Message, validate
from bedstone.salesforce.validation.advice import anti_patterns
from bedstone.salesforce.validation.rule import Rule
from bedstone.salesforce.validation.rules import RULES
from support.schemas import a_schema_for_rules

# What the examples of a code say, in the order of the table: type, message, fix.
EXPECTED: dict[str, list[tuple[str, str, str | None]]] = {
    "QUERY_LENGTH": [
        ("error", "The query has 100,041 characters; 100,000 is the maximum.", None),
    ],
    "SQL_STAR": [
        ("error", '"*" is not SOQL. List the fields, or use FIELDS(STANDARD), or FIELDS(ALL) with LIMIT 200.', None),
    ],
    "SUBQUERY_CONDITION": [
        (
            "error",
            'A subquery cannot be a condition by itself. Use "Id IN (SELECT …)" or "Id NOT IN (SELECT …)".',
            None,
        ),
    ],
    "SQL_KEYWORD": [
        (
            "error",
            (
                '"JOIN" is SQL, not SOQL. Use a relationship: Account.Name for a parent, (SELECT Id FROM '
                "Contacts) for children."
            ),
            None,
        ),
        ("error", '"DISTINCT" is SQL, not SOQL. Use GROUP BY, or COUNT_DISTINCT(field).', None),
    ],
    "SEMIJOIN_CLAUSE": [
        ("error", "LIMIT is not allowed in a subquery with IN.", None),
    ],
    "HAVING_WITHOUT_GROUP": [
        ("error", "HAVING needs GROUP BY.", None),
    ],
    "SQL_FORM": [
        (
            "error",
            'The clauses stand in another order: write "SELECT Id FROM Account ORDER BY Name LIMIT 5".',
            "SELECT Id FROM Account ORDER BY Name LIMIT 5",
        ),
        ("error", '"IS NOT NULL" is not SOQL; write "!= null".', "!= null"),
    ],
    "SYNTAX": [
        ("error", "Unexpected end of the statement at line 1, column 36. Expected a value.", None),
        ("error", '"FORMAT(Name, Site" is not SOQL.', None),
        ("error", '"Account..Name" is not a path.', None),
        ("error", '"FIELDS" cannot stand here.', None),
    ],
    "MIXED_LOGIC": [
        (
            "error",
            (
                "AND and OR are mixed without parentheses, or NOT lacks its own. Add parentheses, for "
                "example: (Name = 'Acme' AND Site = 'Main') OR Phone = '1'."
            ),
            None,
        ),
    ],
    "APEX_ONLY": [
        ("error", '":accountId" only works in Apex (a bind). Use a literal value, or remove it.', None),
        ("warning", '"WITH SECURITY_ENFORCED" only works in Apex (it checks the user\'s rights). Remove it.', None),
    ],
    "DATE_LITERAL_UNKNOWN": [
        ("error", '"LAST_365_DAYS" is not a date literal. Use LAST_N_DAYS:365.', "LAST_N_DAYS:365"),
    ],
    "COUNT_ALONE": [
        ("error", "COUNT() must be the only item and takes no alias; use COUNT(Id) instead.", "COUNT(Id)"),
        ("error", "COUNT() must be the only item and takes no alias; use COUNT(Id) instead.", None),
    ],
    "DISTANCE_FORM": [
        ("error", "DISTANCE() needs a location field first, then GEOLOCATION(), then 'mi' or 'km'.", None),
        ("error", "DISTANCE() needs a location field first, then GEOLOCATION(), then 'mi' or 'km'.", None),
    ],
    "SCHEMA_UNKNOWN": [
        ("info", "Asset is not synced: only the syntax was checked.", None),
    ],
    "OBJECT_UNKNOWN": [
        ("error", 'Object "Acount" does not exist in this org. Did you mean "Account"?', "Account"),
    ],
    "OBJECT_SECOND": [
        ("error", "FROM can name one object; 'Account' must be a relationship of Contact.", None),
    ],
    "FIELD_UNKNOWN": [
        ("error", 'Field "Nmae" does not exist on Account (SELECT). Did you mean "Name"?', "Name"),
    ],
    "NAME_CORRECTED": [
        ("correction", '"Industri" was corrected to "Industry" on Account.', "Industry"),
    ],
    "RELATIONSHIP_UNKNOWN": [
        (
            "error",
            (
                'Contact has no parent relationship "Acount". Did you mean "Account" (to Account)? '
                "Available: Account, CreatedBy, LastModifiedBy, Owner."
            ),
            "Account",
        ),
    ],
    "ID_FOR_RELATIONSHIP": [
        ("error", '"AccountId.Name" uses the field name; use the relationship name: "Account.Name".', "Account"),
    ],
    "CHILD_UNKNOWN": [
        (
            "error",
            (
                'Account has no child relationship "Contact". Did you mean "Contacts"? The subquery must '
                "name the relationship, not the object."
            ),
            "Contacts",
        ),
    ],
    "POLYMORPHIC_FIELD": [
        (
            "error",
            (
                '"What" can point to several objects; only fields of Name are allowed by dot. Use TYPEOF, '
                "or filter on What.Type."
            ),
            None,
        ),
    ],
    "DEPTH_UP": [
        ("error", 'Path "Account.Parent.Parent.Parent.Parent.Parent" goes 6 levels up; 5 is the maximum.', None),
    ],
    "HALLUCINATED_ENTITY": [
        ("error", "\"Banking\" looks like a picklist value of Account. Use Industry = 'Banking'.", None),
    ],
    "DEPRECATED": [
        ("warning", '"Legacy_Code__c" is deprecated.', None),
    ],
    "OBJECT_NOT_QUERYABLE": [
        ("error", 'Object "AccountChangeEvent" cannot be queried.', None),
    ],
    "SCOPE_UNKNOWN": [
        ("error", 'Scope "yours" is not supported by Account. Supported: everything, mine, team.', None),
    ],
    "TOO_MANY_PARENTS": [
        ("error", "121 parent relationships; 55 is the maximum.", None),
    ],
    "ALIAS_NOT_ALLOWED": [
        ("error", 'An alias on "Name" is only allowed in a grouped or aggregate query.', "Name"),
    ],
    "DUPLICATE_FIELD": [
        ("error", 'Field "Id" is selected twice.', None),
        ("error", 'Field "Amount" is selected twice: give FORMAT() an alias.', None),
        ("error", 'Field "name" is selected twice.', None),
        ("error", 'The children "contacts" are selected twice.', None),
    ],
    "ALIAS_RESERVED": [
        ("error", '"group" cannot be an alias.', None),
    ],
    "FIELDS_KIND": [
        ("error", "FIELDS() takes ALL, CUSTOM or STANDARD.", None),
    ],
    "FIELDS_EMPTY": [
        ("error", "FIELDS(CUSTOM) selects nothing on Case.", None),
    ],
    "FIELDS_LIMIT": [
        ("error", "FIELDS(ALL) needs LIMIT 200 or less.", None),
    ],
    "DEPTH_DOWN": [
        ("error", "Subqueries are nested 5 levels; API 66 allows 4.", None),
    ],
    "OFFSET_SUBQUERY": [
        ("error", "OFFSET in a subquery needs LIMIT 1 on the outer query.", None),
    ],
    "AGGREGATE_IN_SUBQUERY": [
        ("error", "Aggregates are not allowed in a child subquery.", None),
    ],
    "TYPEOF_NOT_POLYMORPHIC": [
        ("error", '"Account" is not polymorphic; use Account.Name.', None),
    ],
    "TYPEOF_TYPE": [
        ("error", '"User" is not a type of "What". Types: Account, Case, Opportunity.', None),
        ("error", "A type stands in two branches of TYPEOF.", None),
    ],
    "TYPEOF_ELSE": [
        ("error", '"Industry" in ELSE does not exist on Name.', None),
    ],
    "TYPEOF_PATH": [
        ("error", '"what" is selected by TYPEOF and by path; use one of them.', None),
    ],
    "TOO_MANY_SUBQUERIES": [
        ("error", "21 child subqueries; 20 is the maximum.", None),
    ],
    "FUNCTION_UNKNOWN": [
        ("error", 'Unknown function "YEAR".', None),
    ],
    "CONVERT_TZ": [
        ("error", "convertTimezone() only works inside a date function.", None),
    ],
    "DATE_FN_TYPE": [
        ("error", 'HOUR_IN_DAY() needs a datetime field; "CloseDate" is date.', None),
    ],
    "DATE_FN_GROUP": [
        ("error", "CALENDAR_YEAR() in SELECT must also be in GROUP BY.", None),
    ],
    "FUNCTION_PLACE": [
        ("error", "FORMAT() cannot be used in WHERE.", None),
    ],
    "AGGREGATE_NESTED": [
        ("error", "MAX() cannot hold another aggregate.", None),
    ],
    "EXTERNAL_OBJECT": [
        ("error", "SUM() is not supported on external objects; COUNT() alone is.", None),
        ("error", "LIKE is not supported on external objects.", None),
    ],
    "AGGREGATE_TYPE": [
        ("error", 'SUM() cannot be used on string field "Name".', None),
    ],
    "FUNCTION_TYPE": [
        ("error", 'toLabel() cannot be used on string field "Name".', None),
    ],
    "CALCULATION": [
        ("error", "SOQL cannot calculate in WHERE.", None),
    ],
    "AGGREGATE_IN_WHERE": [
        ("error", "COUNT() belongs in HAVING, not in WHERE.", None),
    ],
    "ADDRESS_FILTER": [
        (
            "error",
            '"BillingAddress" is a compound field; filter on its parts such as its city, or with DISTANCE().',
            None,
        ),
    ],
    "NOT_FILTERABLE": [
        ("error", 'Field "Description" (textarea) cannot be used in WHERE.', None),
    ],
    "DISTANCE_OPERATOR": [
        ("error", "Only < and > are allowed with DISTANCE().", None),
    ],
    "LIKE_ON_ID": [
        ("error", "\"OwnerId\" holds ids, not names. Use Owner.Name LIKE '…'.", "Owner.Name"),
    ],
    "OPERATOR_TYPE": [
        ("error", 'Operator LIKE cannot be used on currency field "Amount".', None),
    ],
    "DATE_LITERAL_MISUSE": [
        ("error", "THIS_YEAR cannot be compared with CALENDAR_YEAR(CloseDate); use a number.", None),
        ("error", "TODAY only fits date and datetime fields.", None),
    ],
    "LITERAL_TYPE": [
        ("error", "LIKE needs a text in quotes.", None),
        ("error", "A currency with its code cannot be compared with an aggregate; write the number alone.", "5000"),
        ("error", "INCLUDES needs texts in quotes.", None),
        ("error", '"2024-02-30" is no day of any calendar.', None),
        (
            "error",
            '"2024-01-01" is not a datetime value for "CreatedDate": write a time too, such as 2024-01-01T00:00:00Z.',
            "2024-01-01T00:00:00Z",
        ),
        ("error", '"1" is not true or false, which "IsWon" needs.', None),
    ],
    "REQUIRED_FILTER": [
        ("error", "ContentDocumentLink must be filtered on Id, ContentDocumentId, LinkedEntityId.", None),
    ],
    "LITERAL_UNQUOTED": [
        ("error", "\"Name\" is text: put 'Acme' in quotes.", "'Acme'"),
    ],
    "STRING_LENGTH": [
        ("error", "A string has 5,000 characters; 4,000 is the maximum.", None),
    ],
    "ID_INVALID": [
        ("error", '"001XXXXXXXXXXXX" is not a valid Salesforce id.', None),
    ],
    "ID_WRONG_OBJECT": [
        ("warning", 'Id "001000000000001AAA" has the prefix of Account, but "OwnerId" points to User.', None),
    ],
    "PICKLIST_VALUE": [
        ("warning", '"Hott" is not a value of Account.Rating. Did you mean "Hot"? Values: Hot, Warm, Cold.', None),
    ],
    "LITERAL_QUOTED": [
        ("error", '"Amount" is currency: write 5000 without quotes.', "5000"),
    ],
    "DATE_LITERAL_N": [
        ("error", 'LAST_N_DAYS needs ":n" with n of 0 to 99,999.', None),
    ],
    "DATE_RANGE": [
        ("error", "Date 9999-01-01 is outside 1700 to 4000.", None),
    ],
    "SEMIJOIN_NESTED": [
        ("error", "A subquery with IN cannot be nested.", None),
    ],
    "SEMIJOIN_OR": [
        ("error", "A subquery with IN cannot stand under OR.", None),
    ],
    "SEMIJOIN_NOT": [
        ("error", "A subquery with IN cannot stand under NOT; use NOT IN.", None),
    ],
    "SEMIJOIN_COUNT": [
        ("error", "Only 2 subqueries with IN are allowed.", None),
    ],
    "SEMIJOIN_LEFT": [
        ("error", "The left side must be an id or reference field without a dot.", None),
    ],
    "SEMIJOIN_OBJECT": [
        ("error", '"Task" is not allowed in a subquery with IN.', None),
    ],
    "SEMIJOIN_SAME": [
        ("error", "The subquery cannot use the same object; filter directly instead.", None),
    ],
    "SEMIJOIN_FIELD": [
        ("error", 'The subquery must select one id or reference field, not "LastName".', None),
    ],
    "SEMIJOIN_TARGET": [
        ("error", '"OwnerId" points to User, not to Account.', None),
    ],
    "SEMIJOIN_HAVING": [
        ("error", "A subquery with IN cannot stand in HAVING.", None),
    ],
    "NOT_GROUPABLE": [
        ("error", '"COUNT(Id)" is an aggregate; it cannot be grouped.', None),
        ("error", 'Field "Description" (textarea) cannot be used in GROUP BY.', None),
    ],
    "ROLLUP_SIZE": [
        ("error", "ROLLUP takes at most 3 fields and nothing outside it.", None),
    ],
    "AGGREGATE_SUBQUERY": [
        ("error", "A child subquery cannot stand in an aggregate query.", None),
    ],
    "TYPEOF_AGGREGATE": [
        ("error", "TYPEOF cannot be combined with aggregates.", None),
    ],
    "NOT_GROUPED": [
        ("error", "FIELDS() cannot be combined with aggregates.", None),
        ("error", '"Rating" is neither grouped nor aggregated. Add it to GROUP BY or aggregate it.', None),
        ("error", '"Rating" is not grouped.', None),
    ],
    "GROUPING_USE": [
        ("error", "GROUPING() needs ROLLUP or CUBE.", None),
    ],
    "DUPLICATE_ALIAS": [
        ("error", 'Two columns would be named "total". Give one an alias.', None),
    ],
    "HAVING_FIELD": [
        ("error", '"Rating" in HAVING is neither grouped nor aggregated.', None),
    ],
    "ORDER_NOT_GROUPED": [
        ("error", '"Rating" in ORDER BY is neither grouped nor aggregated.', None),
    ],
    "NOT_SORTABLE": [
        ("error", 'Field "Description" (textarea) cannot be used in ORDER BY.', None),
    ],
    "LIMIT_RANGE": [
        ("error", "LIMIT must be 0 or more, and a number of rows.", None),
    ],
    "OFFSET_MAX": [
        ("error", "OFFSET 3000 is above 2,000.", None),
    ],
    "AGGREGATE_LIMIT": [
        ("error", "An aggregate without GROUP BY returns one row; remove LIMIT.", ""),
    ],
    "WITH_CATEGORY": [
        (
            "error",
            "WITH DATA CATEGORY needs a filter on PublishStatus (or Id), only AND, each group once, at most 3.",
            None,
        ),
    ],
    "WITH_UNKNOWN": [
        ("error", '"WITH FASTER" is not known.', None),
    ],
    "TOOLING_LIMITS": [
        ("error", "COUNT() is not supported on EntityDefinition.", None),
    ],
    "NO_LIMIT": [
        ("warning", "No LIMIT: the query may return many rows.", None),
    ],
    "NEGATIVE_FILTER": [
        ("warning", "!= alone is not selective.", None),
    ],
    "NULL_FILTER": [
        ("warning", "= null cannot use an index.", None),
    ],
    "LEADING_WILDCARD": [
        ("warning", "LIKE '%bank' cannot use an index.", None),
    ],
    "FORMULA_FILTER": [
        ("warning", '"ExpectedRevenue" is a formula; filtering on it is slow.', None),
    ],
}
ALL = [rule for rules in RULES.values() for rule in rules]


def expected() -> list[tuple[Rule, tuple[str, str, str | None]]]:
    """Each rule with what its example says."""
    places: dict[str, int] = defaultdict(int)
    found = []
    for rule in ALL:
        found.append((rule, EXPECTED[rule.code][places[rule.code]]))
        places[rule.code] += 1
    assert places == {code: len(rows) for code, rows in EXPECTED.items()}
    return found


def explain(name: str, owner: ObjectSchema) -> str | None:
    """Know Banking as a value, like an org that has such records."""
    return (
        f"\"{name}\" looks like a picklist value of {owner.name}. Use Industry = 'Banking'."
        if name == "Banking"
        else None
    )


@pytest.fixture(scope="module")
def graph() -> SchemaGraph:
    return a_schema_for_rules()


def messages(query: str, graph: SchemaGraph) -> list[Message]:
    return validate(query, graph, ground=explain).messages


@pytest.mark.parametrize(("rule", "said"), expected(), ids=lambda item: getattr(item, "code", ""))
def test_the_example_breaks_the_rule(graph: SchemaGraph, rule: Rule, said: tuple[str, str, str | None]) -> None:
    report = validate(rule.broken, graph, ground=explain)
    found = [item for item in report.messages if item.code == rule.code]
    assert said in [(item.type, item.message, item.corrected) for item in found]
    assert report.valid == (said[0] != "error" and rule.code != "NAME_CORRECTED")
    assert said[0] == ("error" if rule.severity == "repairable" else rule.severity)


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_the_corrected_example_is_valid(graph: SchemaGraph, rule: Rule) -> None:
    if rule.corrected is None:
        assert rule.reason.endswith(".")
        return
    report = validate(rule.corrected, graph, ground=explain)
    assert (report.valid, rule.code in [item.code for item in report.messages]) == (True, False), report.messages
    assert not rule.reason


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_an_example_breaks_nothing_else(graph: SchemaGraph, rule: Rule) -> None:
    """But for two rules that another one always accompanies."""
    along = {"NAME_CORRECTED": {"FIELD_UNKNOWN"}, "TOO_MANY_SUBQUERIES": {"DUPLICATE_FIELD"}}.get(rule.code, set())
    errors = {item.code for item in messages(rule.broken, graph) if item.type == "error"}
    assert errors - {rule.code} == along


def test_the_validator_corrects_what_the_table_corrects(graph: SchemaGraph) -> None:
    proposals = [(validate(rule.broken, graph, ground=explain).corrected, rule.corrected) for rule in ALL]
    made = [(proposal, wanted) for proposal, wanted in proposals if proposal is not None]
    assert len(made) >= 18
    for proposal, wanted in made:
        assert proposal == wanted


def test_every_code_has_a_row() -> None:
    """Codes outside rules stand in calls of `error` and `add`."""
    table = {rule.code for rule in ALL}
    assert table == set(EXPECTED)
    assert len(table) == 100
    assert _codes_in_source() <= table


def _codes_in_source() -> set[str]:
    places = {"error": 0, "add": 1}  # of the code among the arguments
    found = set()
    for file in Path(validation.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in places:
                code = node.args[places[node.func.attr] :][:1]
                found |= {str(item.value) for item in code if isinstance(item, ast.Constant)}
    assert {"FIELD_UNKNOWN", "DEPRECATED", "NAME_CORRECTED", "SCHEMA_UNKNOWN"} <= found
    return found


def test_every_rule_says_what_it_checks() -> None:
    for rule in ALL:
        assert rule.checks.endswith("."), rule
        assert rule.checks[0].isupper() or rule.checks.startswith(("toLabel", "convertTimezone")), rule


def test_an_unrestricted_picklist_gives_a_warning(graph: SchemaGraph) -> None:
    (found,) = messages("SELECT Id FROM Account WHERE Industry = 'Bankin' LIMIT 1", graph)
    assert (found.type, found.code, found.corrected) == ("warning", "PICKLIST_VALUE", None)
    assert (
        found.message == '"Bankin" is not a value of Account.Industry. Did you mean "Banking"? Values: Banking, Retail.'
    )


def test_the_values_of_a_multi_select_picklist_are_checked_one_by_one(graph: SchemaGraph) -> None:
    found = messages("SELECT Id FROM Contact WHERE Interests__c INCLUDES ('Golf;Polo', 'Chess') LIMIT 1", graph)
    assert [item.message.split()[0] for item in found] == ['"Polo"', '"Chess"']


@pytest.mark.parametrize("query", ["ORDER FIELDS(ALL)", "group x", "LIMIT", "", "SELECT"])
def test_words_of_clauses_alone_are_syntax_errors(graph: SchemaGraph, query: str) -> None:
    assert [item.code for item in messages(query, graph)] == ["SYNTAX"]


def test_subqueries_nest_one_level_before_api_58(graph: SchemaGraph) -> None:
    query = "SELECT Id, (SELECT Id, (SELECT Id FROM ChildAccounts) FROM ChildAccounts) FROM Account LIMIT 1"
    assert validate(query, graph).valid
    report = validate(query, graph, version=57)
    assert [item.message for item in report.messages] == ["Subqueries are nested 2 levels; API 57 allows 1."]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT Id FROM Account WHERE Name LIKE '%bank'", ["leading_wildcard", "no_limit"]),
        ("SELECT Id FROM Account LIMIT 5 OFFSET 1000", ["deep_offset", "limit_without_order"]),
        ("SELECT Description FROM Account ORDER BY Name LIMIT 5", ["long_text_in_list"]),
        ("SELECT Name FROM Account WHERE OwnerId = '005000000000001AAA' ORDER BY Name LIMIT 5", ["hard_coded_id"]),
        ("SELECT Id, Legacy_Code__c FROM Account ORDER BY Name LIMIT 5", ["deprecated"]),
        ("SELECT Industry, COUNT(Id) FROM Account GROUP BY Industry LIMIT 5", []),
    ],
)
def test_anti_patterns_of_a_valid_query(graph: SchemaGraph, query: str, names: list[str]) -> None:
    report = validate(query, graph)
    assert report.valid
    assert [item.name for item in anti_patterns(query, report, graph)] == names


def test_six_subqueries_are_many() -> None:
    relationships = [f"Things{number}" for number in range(6)]
    query = (
        f"SELECT Id{''.join(f', (SELECT Id FROM {name})' for name in relationships)} FROM Account ORDER BY Id LIMIT 1"
    )
    graph = SchemaGraph()
    assert [item.name for item in anti_patterns(query, validate(query, graph), graph)] == ["many_subqueries"]
