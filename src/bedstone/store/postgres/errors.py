"""What PostgreSQL reports: a server that does not answer or lacks something, and content that is damaged."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from bedstone.store.engine import StoreDamaged, StoreUnavailable

UNAVAILABLE = (
    psycopg.OperationalError,  # connections, timeouts, a full disk, too many clients
    psycopg.InterfaceError,  # a connection that is closed
    errors.ReadOnlySqlTransaction,  # a standby after a failover
    errors.InsufficientPrivilege,
)
DAMAGED = (errors.DataCorrupted, errors.IndexCorrupted, errors.UndefinedTable, errors.UndefinedColumn)
REPEATABLE = (errors.DeadlockDetected, errors.SerializationFailure)  # nothing was changed; the next attempt succeeds
CONNECTING = re.compile(r"connection failed: (connection to server (at|on socket) .*? failed: )?")  # to where, we say
CLOSED = "The store is closed."


def unavailable(place: str, reason: object) -> StoreUnavailable:
    """Return the error for a store that cannot be read or written now."""
    lines = CONNECTING.sub("", str(reason).strip()).splitlines()
    return StoreUnavailable(f"PostgreSQL at {place}: {lines[0] if lines else type(reason).__name__}")


@contextmanager
def translate_errors(place: str) -> Iterator[None]:
    """Raise `StoreDamaged` for corrupt content, and `StoreUnavailable` where nothing can be read or written now."""
    try:
        yield
    except DAMAGED as error:
        raise StoreDamaged(f"The store at {place} is damaged: {str(error).splitlines()[0]}.") from error
    except UNAVAILABLE as error:
        raise unavailable(place, error) from error
