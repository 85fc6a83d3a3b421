"""Saved orgs: how to log in to each, with secrets in the system's keyring or in a file only the user can read."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from bedstone.errors import InvalidInput, InvalidSetting, NotFound
from bedstone.permissions import make_private_folder
from bedstone.salesforce.client.auth import (
    AccessToken,
    Auth,
    ClientCredentials,
    JwtBearer,
    RefreshToken,
    SfCli,
    SoapLogin,
)

Method = Literal["access-token", "client-credentials", "jwt", "refresh-token", "sf", "soap"]
SERVICE = "bedstone-salesforce"
NEEDS: dict[Method, tuple[str, ...]] = {
    "access-token": ("url", "secret"),
    "client-credentials": ("url", "client_id", "secret"),
    "jwt": ("url", "client_id", "username", "key_file"),
    "refresh-token": ("url", "client_id", "secret"),
    "sf": ("username",),
    "soap": ("url", "username", "secret"),
}


class UnknownOrg(NotFound):
    """No org has that name."""


@dataclass(frozen=True)
class Org:
    """How to log in to an org; `url` is the login URL, or with an access token the URL of the org."""

    name: str
    method: Method
    url: str = ""
    client_id: str = ""
    username: str = ""
    key_file: str = ""
    read_only: bool = False


class Orgs:
    """The saved orgs of a data folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "orgs.json"
        self._secrets = folder / "secrets.json"

    def version(self) -> tuple[int, int] | None:
        """Return another value whenever the list of orgs was written; None before the first login."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def all(self) -> list[Org]:
        """Return every org."""
        return [Org(**item) for item in self._read(self._file).values()]

    def get(self, name: str | None = None) -> Org:
        """Return an org by its name, or the only one."""
        known = {org.name: org for org in self.all()}
        if name is None and len(known) == 1:
            return next(iter(known.values()))
        if name is None or name not in known:
            listed = ", ".join(known) or "none yet; `bedstone salesforce login` adds one"
            raise UnknownOrg(
                f"Choose an org with --org ({listed})." if name is None else f"Unknown org {name!r}; known: {listed}."
            )
        return known[name]

    def add(self, org: Org, secret: str = "") -> None:
        """Save an org; it replaces the one with its name."""
        given = asdict(org) | {"secret": secret}
        missing = [part for part in NEEDS[org.method] if not given[part]]
        if missing:
            raise InvalidInput(f"The method {org.method} needs: {', '.join(missing)}.")
        if secret:
            self._save_secret(org.name, secret)
        self._write(self._file, self._read(self._file) | {org.name: asdict(org)})

    def folder_name(self, org: Org) -> str:
        """Return the name of the org's folder; another org or user under the same name gets another folder."""
        identity = sha256("\n".join((org.name, org.method, org.url, org.client_id, org.username)).encode()).hexdigest()
        return f"{re.sub(r'[^A-Za-z0-9-]', '_', org.name)[:40]}-{identity[:12]}"

    def remove(self, name: str) -> None:
        """Remove an org and its secret."""
        self.get(name)
        self._write(self._file, {key: value for key, value in self._read(self._file).items() if key != name})
        self._write(self._secrets, {key: value for key, value in self._read(self._secrets).items() if key != name})
        if keyring := _keyring():
            try:
                keyring.delete_password(SERVICE, name)
            except keyring.errors.KeyringError:
                return

    def auth(self, org: Org) -> Auth:
        """Return the login method of an org."""
        return auth_of(org, self._secret(org.name), lambda new: self._save_secret(org.name, new))

    def _secret(self, name: str) -> str:
        if keyring := _keyring():
            try:
                found = keyring.get_password(SERVICE, name)
            except keyring.errors.KeyringError:
                found = None
            if found:
                return str(found)
        return str(self._read(self._secrets).get(name, ""))

    def _save_secret(self, name: str, secret: str) -> None:
        if keyring := _keyring():
            try:
                keyring.set_password(SERVICE, name, secret)
            except keyring.errors.KeyringError:
                pass  # fall back to the file
            else:
                return
        self._write(self._secrets, self._read(self._secrets) | {name: secret})

    @staticmethod
    def _read(file: Path) -> dict[str, Any]:
        try:
            data: dict[str, Any] = json.loads(file.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError:
            raise InvalidSetting(f"{file} is not valid JSON; fix or remove it.") from None
        return data

    @staticmethod
    def _write(file: Path, data: Mapping[str, Any]) -> None:
        """Write a file atomically; only its owner can ever read it."""
        make_private_folder(file.parent)
        draft = file.with_suffix(f".{os.getpid()}.tmp")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as target:
            json.dump(dict(data), target, indent=1)
        draft.replace(file)


def auth_of(org: Org, secret: str, keep: Callable[[str], None] | None = None) -> Auth:
    """Return the login method of an org; `keep` saves a secret that replaces the given one."""
    match org.method:
        case "access-token":
            return AccessToken(org.url, secret)
        case "client-credentials":
            return ClientCredentials(org.url, org.client_id, secret)
        case "jwt":
            return JwtBearer(org.url, org.client_id, org.username, Path(org.key_file))
        case "refresh-token":
            return RefreshToken(org.url, org.client_id, secret, keep=keep)
        case "sf":
            return SfCli(org.username)
        case "soap":
            return SoapLogin(org.url, org.username, secret)


def _keyring() -> Any:
    """Return the system's keyring, or None without one or without the package for it."""
    try:
        import keyring  # noqa: PLC0415 - an extra
        import keyring.errors  # noqa: PLC0415
    except ImportError:
        return None
    return keyring if keyring.get_keyring().priority > 0 else None
