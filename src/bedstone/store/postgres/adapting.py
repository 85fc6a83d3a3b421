"""Texts with characters that PostgreSQL cannot hold: NUL and lone surrogates are escaped, and restored when read.

PDF titles contain the one, names of files from other systems the other.
"""

import re

from psycopg import BaseConnection
from psycopg.abc import Buffer
from psycopg.types.string import StrBinaryDumper, StrDumperUnknown, TextLoader

ESCAPE = "\ue000"  # from the private use area
UNSAFE = re.compile(f"[\0{ESCAPE}\ud800-\udfff]")
ESCAPED = re.compile(f"{ESCAPE}([0-9a-f]{{4}})")


def escape(text: str) -> str:
    """Return a text that PostgreSQL can hold; different texts stay different."""
    return UNSAFE.sub(lambda found: f"{ESCAPE}{ord(found[0]):04x}", text)


def restore(text: str) -> str:
    """Return the text that was escaped."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if ESCAPE in text else text


class _Dumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escape(obj))


class _BinaryDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escape(obj))


class _Loader(TextLoader):
    def load(self, data: Buffer) -> str:
        return restore(str(data, "utf-8"))


def register(connection: BaseConnection[object]) -> None:
    """Escape and restore all texts of a connection."""
    connection.adapters.register_dumper(str, _BinaryDumper)
    connection.adapters.register_dumper(str, _Dumper)  # the last one is the default
    connection.adapters.register_loader("text", _Loader)
