"""The bearer token of the server, and its secret: where they may be read from, and how strong they must be."""

from pathlib import Path
from shlex import quote

from bedstone.errors import InvalidSetting, explain
from bedstone.permissions import is_exposed

MIN_TOKEN_LENGTH = 16
MIN_DISTINCT_CHARACTERS = 6
ADVICE = "Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"


def read_token_file(file: Path, what: str = "token") -> str:
    """Return the token, or the secret, in a file that only its owner can read."""
    try:
        token = file.read_text(encoding="utf-8").strip()
        exposed = is_exposed(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"Cannot read the {what} file {file}: {explain(error)}.") from error
    if not token:
        raise InvalidSetting(f"The {what} file {file} is empty.")
    if len(token.split()) > 1:
        raise InvalidSetting(f"The {what} file {file} must contain one word: the {what}.")
    if exposed:
        raise InvalidSetting(
            f"Other users of this machine can read the {what} file {file}. "
            f"Protect it with: chmod 600 {quote(str(file))}"
        )
    return check_token(token, f"The {what} in {file}")


def check_token(token: str, name: str) -> str:
    """Return the token if it cannot be guessed; `name` starts the sentence about a weak one."""
    if len(token.split()) != 1 or token != token.strip():
        raise InvalidSetting(f"{name} must be one word, without spaces.")
    if len(token) < MIN_TOKEN_LENGTH or len(set(token)) < MIN_DISTINCT_CHARACTERS:
        raise InvalidSetting(
            f"{name} is easy to guess. Use at least {MIN_TOKEN_LENGTH} characters, "
            f"{MIN_DISTINCT_CHARACTERS} of them different. {ADVICE}"
        )
    return token
