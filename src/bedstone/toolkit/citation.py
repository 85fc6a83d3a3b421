"""Where a hit comes from, so that an agent can read it again, check a quote, and link it."""

from pydantic import Field

from bedstone.toolkit.links import Links
from bedstone.toolkit.models import Result


class Citation(Result):
    """The id that fetch and cite take, the page that shows the passage, and its range in the stored text."""

    id: str = Field(description="Pass it to fetch or cite")
    url: str | None = Field(None, description="The page that shows the passage, highlighted in its document")
    start: int | None = Field(None, description="Where the passage begins in the text of the id without its #part")
    end: int | None = None

    @classmethod
    def of(cls, links: Links, item_id: str, address: str, span: tuple[int, int] | None = None) -> "Citation":
        """Return a citation with the URL of its page, where one is served."""
        start, end = span or (None, None)
        return cls(id=item_id, url=links.url(address), start=start, end=end)
