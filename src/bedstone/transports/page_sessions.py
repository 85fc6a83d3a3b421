"""Sessions of browsers that logged in with the token. They survive a restart, and so does their end."""

import hmac
import json
import logging
import secrets
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bedstone.permissions import write_private_file

if TYPE_CHECKING:
    from bedstone.services.peers import Peers

logger = logging.getLogger(__name__)

SESSION_SECONDS = 30 * 24 * 3600
SECRET_BYTES = 32


class SessionRecords(Protocol):
    """What servers with the same sessions share: a secret, and the sessions that ended early."""

    @property
    def secret(self) -> str | None:
        """The secret that cookies are signed with; None while it is not known."""

    def is_ended(self, name: str) -> bool:
        """Return whether a session was ended."""

    def end(self, name: str, expiry: float) -> None:
        """Record that a session ended, until it would have expired; may block."""


class PageSessions:
    """Cookies that are signed with the token and with a secret, and reveal neither.

    Open sessions are not stored. Those that ended early are, until they would have expired. A new token or a new secret
    ends all of them.
    """

    cookie = "bedstone_page"
    max_age = SESSION_SECONDS

    def __init__(self, token: str, records: SessionRecords | None = None) -> None:
        self._token = token.encode()
        self._records = records if records is not None else SessionFile(None)

    def begin(self) -> str:
        """Return the cookie of a new session."""
        name = f"{secrets.token_hex(16)}-{int(time.time()) + SESSION_SECONDS}"
        return f"{name}.{self._signature(name)}"

    def end(self, cookie: str) -> None:
        """Invalidate a cookie, for all servers that share the records and for later ones; may block."""
        if self.is_valid(cookie):
            name = cookie.partition(".")[0]
            self._records.end(name, _expiry(name))

    def is_valid(self, cookie: str) -> bool:
        """Return whether a cookie belongs to a session that is logged in."""
        name, _, signature = cookie.partition(".")
        is_ended = self._records.is_ended(name)  # first: the secret may come with it
        is_signed = hmac.compare_digest(signature.encode(), self._signature(name).encode())
        return is_signed and not is_ended and _expiry(name) > time.time()

    def _signature(self, name: str) -> str:
        # While the secret is not known, nothing is valid: each signature has a secret of its own.
        secret = self._records.secret or secrets.token_hex(SECRET_BYTES)
        key = hmac.new(secret.encode(), self._token, sha256).digest()
        return hmac.new(key, f"bedstone page {name}".encode(), sha256).hexdigest()


class SharedSessions:
    """Records in the store that all servers share."""

    def __init__(self, peers: "Peers") -> None:
        self._peers = peers

    @property
    def secret(self) -> str | None:
        return self._peers.secret

    def is_ended(self, name: str) -> bool:
        return self._peers.is_ended(name)

    def end(self, name: str, expiry: float) -> None:
        self._peers.end_session(name, max(0.0, expiry - time.time()))


class SessionFile:
    """Records in a file of the data folder; in memory without one. A configured secret replaces the file's."""

    def __init__(self, file: Path | None, secret: str | None = None) -> None:
        self._file = file
        self._configured = secret
        self._version: tuple[int, int] | None = None
        self._secret = secrets.token_hex(SECRET_BYTES)
        self._ended: dict[str, float] = {}
        if not self._load():
            self._save()

    @property
    def secret(self) -> str:
        return self._configured or self._secret

    def is_ended(self, name: str) -> bool:
        self._load()  # another server of this data folder may have ended it
        return name in self._ended

    def end(self, name: str, expiry: float) -> None:
        now = time.time()
        self._ended = {key: until for key, until in self._ended.items() if until > now}
        self._ended[name] = expiry
        self._save()

    def _load(self) -> bool:
        """Read the file if it has changed; return whether it exists and is valid."""
        if self._file is None:
            return False
        try:
            status = self._file.stat()
            version = (status.st_mtime_ns, status.st_ino)
            if version != self._version:
                self._version = version  # a damaged file is reported once
                data: dict[str, Any] = json.loads(self._file.read_text("utf-8"))
                self._secret, ended = str(data["secret"]), dict(data["ended"])
                self._ended |= {str(name): float(expiry) for name, expiry in ended.items()}
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("Logins do not survive a restart: cannot read %s: %s", self._file, error)
            return False
        return True

    def _save(self) -> None:
        if self._file is None:
            return
        try:
            write_private_file(self._file, json.dumps({"secret": self._secret, "ended": self._ended}))
            status = self._file.stat()
            self._version = (status.st_mtime_ns, status.st_ino)
        except OSError as error:
            logger.warning("Logouts do not survive a restart: cannot write %s: %s", self._file, error)


def _expiry(name: str) -> float:
    """Return when a session ends by itself; the signature protects the number."""
    number = name.rpartition("-")[2]
    return float(number) if number.isdecimal() else 0.0
