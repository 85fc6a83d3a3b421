"""Which pages may use the server from a browser: those of its own origin, port included, and configured ones."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

from bedstone.errors import InvalidSetting

LOOPBACK = ("localhost", "127.0.0.1", "::1")
DEFAULT_PORTS = {"http": 80, "https": 443}
AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::([0-9]{1,5}))?")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s*]+")
# A browser names the relation of a page to the server here, also in requests that carry no Origin.
FOREIGN_SITES = ("cross-site", "same-site")


@dataclass(frozen=True)
class Origins:
    """The rule for the `Origin` header; programs other than browsers do not send one."""

    public_names: Collection[str] = ()  # host names of a reverse proxy, on the usual ports
    configured: Collection[str] = ()

    @classmethod
    def of(cls, allowed_hosts: Sequence[str], allowed_origins: Sequence[str]) -> Self:
        """Return the rule for the settings."""
        origins = frozenset(origin.lower().rstrip("/") for origin in allowed_origins)
        for origin in origins:
            if not ORIGIN.fullmatch(origin):
                raise InvalidSetting(f"Invalid origin in mcp.allowed_origins: {origin!r}. Example: https://app.example")
        names = frozenset(name for host in allowed_hosts if (name := host_name(host)) and name not in LOOPBACK)
        return cls(names, origins)

    def allow(self, origin: str, host: str) -> bool:
        """Return whether a page of `origin` may send a request to `host`, the value of the Host header."""
        origin = origin.lower()
        if origin in self.configured:
            return True
        scheme, _, authority = origin.partition("://")
        default = DEFAULT_PORTS.get(scheme)
        theirs, ours = _parse(authority, default), _parse(host, default)
        if default is None or theirs is None or ours is None:
            return False
        (their_name, their_port), (our_name, our_port) = theirs, ours
        is_same_name = their_name == our_name or (their_name in LOOPBACK and our_name in LOOPBACK)
        if is_same_name and their_port == our_port:
            return True
        return their_name in self.public_names and their_port == default


def host_name(authority: str) -> str | None:
    """Return the host of `host:port` in lower case and without brackets, or None if it is invalid."""
    match = AUTHORITY.fullmatch(authority.lower())
    return (match[1] or match[2]) if match else None


def _parse(authority: str, default_port: int | None) -> tuple[str, int | None] | None:
    match = AUTHORITY.fullmatch(authority.lower())
    return (match[1] or match[2], int(match[3]) if match[3] else default_port) if match else None
