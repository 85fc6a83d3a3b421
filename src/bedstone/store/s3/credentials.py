"""Credentials of a bucket from the files that Amazon's tools write; other sources are the library's."""

import configparser
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obstore.store import S3Credential

FRESH = timedelta(minutes=10)  # after which a file is read again: a tool may have renewed what it has
ELSEWHERE = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")  # what the library finds in the environment


def find_file_credentials(environment: Mapping[str, str] = os.environ) -> "Callable[[], S3Credential] | None":
    """Return what reads the credentials of a profile; None if the environment has some, or no file does."""
    if any(environment.get(name) for name in ELSEWHERE) or _read(environment) is None:
        return None

    def provide() -> "S3Credential":
        found = _read(environment)
        if found is None:
            raise ValueError("The credentials file has no access key any more.")
        return {**found, "expires_at": datetime.now(UTC) + FRESH}

    return provide


def find_region(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the region of a profile; None if the environment has one, or no file does."""
    if environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"):
        return None
    name = _profile(environment)
    section = name if name == "default" else f"profile {name}"
    return _load(environment.get("AWS_CONFIG_FILE"), "config").get(section, "region", fallback=None)


def _read(environment: Mapping[str, str]) -> "S3Credential | None":
    name = _profile(environment)
    for file, kind, section in (
        (environment.get("AWS_SHARED_CREDENTIALS_FILE"), "credentials", name),
        (environment.get("AWS_CONFIG_FILE"), "config", name if name == "default" else f"profile {name}"),
    ):
        known = _load(file, kind)
        key = known.get(section, "aws_access_key_id", fallback="")
        secret = known.get(section, "aws_secret_access_key", fallback="")
        if key and secret:
            token = known.get(section, "aws_session_token", fallback=None)
            return {"access_key_id": key, "secret_access_key": secret, "token": token, "expires_at": None}
    return None


def _profile(environment: Mapping[str, str]) -> str:
    return environment.get("AWS_PROFILE") or "default"


def _load(file: str | None, kind: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(Path(file).expanduser() if file else Path.home() / ".aws" / kind, encoding="utf-8")
    except (configparser.Error, OSError, ValueError, RuntimeError):  # no home folder, or not such a file
        return configparser.RawConfigParser()
    return parser
