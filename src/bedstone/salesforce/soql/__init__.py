"""SOQL and SOSL: parse and write statements, and quote values in them."""

from bedstone.salesforce.soql.cursor import Dialect
from bedstone.salesforce.soql.parser import SoqlParser, parse_soql
from bedstone.salesforce.soql.problems import Deviation, SyntaxProblem
from bedstone.salesforce.soql.sosl_parser import parse_sosl
from bedstone.salesforce.soql.writer import write

__all__ = ["Deviation", "Dialect", "SoqlParser", "SyntaxProblem", "parse_soql", "parse_sosl", "write"]
