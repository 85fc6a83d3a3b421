"""How a client's configuration names a server that is already running."""

import json
from typing import Any


def network_entry(url: str, *, kind: str = "http", guarded: bool = False) -> dict[str, Any]:
    """The entry for one server; the token stays a blank to fill in."""
    entry: dict[str, Any] = {"type": kind, "url": url}
    return entry | {"headers": {"Authorization": "Bearer <token>"}} if guarded else entry


def snippet(entry: dict[str, Any]) -> str:
    """A whole configuration to paste."""
    return json.dumps({"mcpServers": {"bedstone": entry}}, indent=2)
