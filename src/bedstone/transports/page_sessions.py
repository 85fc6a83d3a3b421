"""Sessions of browsers that logged in with the token. They survive a restart, and so does their end."""

import hmac
import json
import logging
import secrets
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from bedstone.permissions import write_private_file

logger = logging.getLogger(__name__)

SESSION_SECONDS = 30 * 24 * 3600
SECRET_BYTES = 32


class PageSessions:
    """Cookies that are signed with the token and with a secret of the data folder, and reveal neither.

    Open sessions are not stored. Those that ended early are, until they would have expired. A new token, or the loss
    of the file, ends all of them.
    """

    cookie = "bedstone_page"
    max_age = SESSION_SECONDS

    def __init__(self, token: str, file: Path | None = None) -> None:
        self._token = token.encode()
        self._file = file
        self._version: tuple[int, int] | None = None
        self._secret = secrets.token_hex(SECRET_BYTES)
        self._ended: dict[str, float] = {}
        if not self._load():
            self._save()

    def begin(self) -> str:
        """Return the cookie of a new session."""
        name = f"{secrets.token_hex(16)}-{int(time.time()) + SESSION_SECONDS}"
        return f"{name}.{self._signature(name)}"

    def end(self, cookie: str) -> None:
        """Invalidate a cookie, for this process and later ones."""
        if self.is_valid(cookie):
            name = cookie.partition(".")[0]
            now = time.time()
            self._ended = {key: expiry for key, expiry in self._ended.items() if expiry > now}
            self._ended[name] = _expiry(name)
            self._save()

    def is_valid(self, cookie: str) -> bool:
        """Return whether a cookie belongs to a session that is logged in."""
        self._load()  # another server of this data folder may have ended it
        name, _, signature = cookie.partition(".")
        is_signed = hmac.compare_digest(signature.encode(), self._signature(name).encode())
        return is_signed and name not in self._ended and _expiry(name) > time.time()

    def _signature(self, name: str) -> str:
        key = hmac.new(self._secret.encode(), self._token, sha256).digest()
        return hmac.new(key, f"bedstone page {name}".encode(), sha256).hexdigest()

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
