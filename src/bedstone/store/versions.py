"""The version of a store: how many of the migrations it has had, and which versions a process can work with.

Migrations are numbered by their place, are only ever added at the end, and add what is new before a later version
removes what is old: while servers are upgraded one by one, those of the previous version go on with the tables of the
newer one until they are restarted.
"""

from bedstone.store.engine import StoreVersionMismatch


def check_version(found: int, known: int, place: str) -> None:
    """Raise `StoreVersionMismatch` for a store that this version does not know, or that has not been migrated yet."""
    check_not_newer(found, known, place)
    if found < known:
        state = f"has version {found}" if found else "does not exist yet"
        raise StoreVersionMismatch(
            f"The store at {place} {state}, and it was opened for reading: a server that may write brings it to "
            f"version {known}."
        )


def check_not_newer(found: int, known: int, place: str) -> None:
    """Raise `StoreVersionMismatch` for a store of a newer version."""
    if found > known:
        raise StoreVersionMismatch(
            f"The store at {place} was upgraded to version {found} by a newer Bedstone, and this one knows version "
            f"{known}: upgrade this one too."
        )
