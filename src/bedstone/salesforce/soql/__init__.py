"""SOQL and SOSL: read, write, and put values into them safely."""

from bedstone.salesforce.soql.parser import Dialect, SoqlParser, parse_soql
from bedstone.salesforce.soql.problems import Deviation, SyntaxProblem
from bedstone.salesforce.soql.sosl_parser import parse_sosl
from bedstone.salesforce.soql.writer import write

__all__ = ["Deviation", "Dialect", "SoqlParser", "SyntaxProblem", "parse_soql", "parse_sosl", "write"]
