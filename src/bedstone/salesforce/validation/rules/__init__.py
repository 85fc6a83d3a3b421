"""Every rule of the validator, by what it is about."""

from bedstone.salesforce.validation import advice, parsing
from bedstone.salesforce.validation.rule import rules_of
from bedstone.salesforce.validation.rules import (
    from_,
    functions,
    grouping,
    literals,
    names,
    options,
    order_limit,
    select,
    semi_join,
    where,
)

RULES = {
    "Syntax": rules_of(parsing),
    "Names": names.RULES,
    "FROM and USING SCOPE": rules_of(from_),
    "SELECT": rules_of(select),
    "Functions": rules_of(functions),
    "WHERE": rules_of(where),
    "Literals": rules_of(literals),
    "Subqueries with IN": rules_of(semi_join),
    "GROUP BY and HAVING": rules_of(grouping),
    "ORDER BY, LIMIT and OFFSET": rules_of(order_limit),
    "WITH and the Tooling API": rules_of(options),
    "Advice": rules_of(advice),
}
