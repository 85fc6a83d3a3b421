"""Addresses of the product's own pages, as a client can open them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedstone.settings import Settings

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


@dataclass(frozen=True)
class Links:
    """Makes URLs of pages; without a `base` it makes none: no page is served, or its public address is unknown."""

    base: str | None = None

    @classmethod
    def of(cls, settings: "Settings") -> "Links":
        """Return links to the configured public address, or to this machine if the server listens there only."""
        mcp = settings.mcp
        if mcp.public_url:
            return cls(mcp.public_url.rstrip("/"))
        is_local = mcp.transport in ("http", "all") and mcp.host in LOOPBACK
        return cls(f"http://localhost:{mcp.port}" if is_local else None)

    def url(self, address: str) -> str | None:
        """Return the URL of a page."""
        return None if self.base is None else f"{self.base}{address}"
