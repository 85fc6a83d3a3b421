"""Notes: what servers with one store tell each other for a while."""

from collections.abc import Callable, Mapping
from typing import Protocol

SERVERS = "peer:"  # how the names of the notes begin by which servers say that they are there


class Notes(Protocol):
    """Named texts that every process with the store sees at once; each is gone after its time, by the store's clock.

    Notes are not documents: writing one is not a change for an index, and no process looks for tasks because of it.
    """

    def put(self, name: str, text: str, seconds: float, *, wakes: bool = False) -> None:
        """Leave a note in place of the one with its name; with `wakes`, all that wait look at the notes at once."""

    def put_once(self, name: str, text: str) -> str:
        """Leave a note that stays for ever, unless there is one with this name; return the one that is there now."""

    def read(self, prefix: str) -> Mapping[str, str]:
        """Return the notes whose names begin with a prefix, by the rest of the name."""

    def delete(self, name: str) -> None:
        """Take a note away; ignore an unknown one."""

    def prune(self) -> None:
        """Delete the notes whose time is over."""

    def revision(self) -> int:
        """Return a number that is another one after a note that wakes."""

    def wait(self, has_changed: Callable[[], bool], seconds: float) -> bool:
        """Wait until something has changed, at most some seconds; return whether it has."""
