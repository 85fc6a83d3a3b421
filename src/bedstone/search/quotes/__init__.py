"""Whether a text has a quotation, and where."""

from bedstone.search.quotes.find import MAX_QUOTE_CHARACTERS, find_quote
from bedstone.search.quotes.match import Difference, QuoteMatch

__all__ = ["MAX_QUOTE_CHARACTERS", "Difference", "QuoteMatch", "find_quote"]
