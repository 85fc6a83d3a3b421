"""The address of a PostgreSQL store: how to connect, which schema it has, and how to name it without its password."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bedstone.errors import InvalidSetting

DEFAULT_SCHEMA = "bedstone"
SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
DEFAULTS = {  # a server that has gone is noticed within half a minute, not within hours
    "application_name": "bedstone",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
INVALID = (
    "storage.database is not a valid address. Write postgresql://USER@HOST:PORT/DATABASE?schema=NAME, and encode "
    "special characters in a user name or password: @ as %40, / as %2F, : as %3A."
)


@dataclass(frozen=True)
class Address:
    """How to connect; `place` is what messages and logs name."""

    conninfo: str
    schema: str
    place: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the parts of an address; all of libpq's parameters are valid, and `schema`."""
        try:
            parts = urlsplit(text)
            query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
            rest = urlencode([(name, value) for name, value in query if name != "schema"])
            known = conninfo_to_dict(parts._replace(scheme="postgresql", query=rest).geturl())
        except (ValueError, psycopg.ProgrammingError):  # what the library says may contain the password
            raise InvalidSetting(INVALID) from None
        if _has_misplaced_parts(known):
            raise InvalidSetting(INVALID)
        schema = dict(query).get("schema", DEFAULT_SCHEMA)
        if not SCHEMA_NAME.fullmatch(schema):
            raise InvalidSetting(
                f"storage.database: invalid schema {schema!r}. Use lower-case letters, digits and underscores."
            )
        host = known.get("host") or known.get("hostaddr") or "the local socket"
        port = f":{known['port']}" if known.get("port") else ""
        place = f"{host}{port}/{known.get('dbname') or ''} (schema {schema})"
        return cls(make_conninfo("", **(dict[str, Any](DEFAULTS) | known)), schema, place)


def _has_misplaced_parts(known: Mapping[str, Any]) -> bool:
    """Return whether a part of a password is taken for another part: `ann:12/34@host` has the port 12."""
    ports = str(known.get("port") or "").split(",")
    names = f"{known.get('host')}{known.get('dbname')}"
    return not all(port.isdecimal() or not port for port in ports) or "@" in names
