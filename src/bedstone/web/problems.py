"""What an error page says: which page was requested, what went wrong, and where to go on."""

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import quote, unquote

from bedstone import __version__
from bedstone.web.forms import local_path

TITLES = {
    HTTPStatus.BAD_REQUEST: "That did not work",
    HTTPStatus.FORBIDDEN: "That is not allowed",
    HTTPStatus.NOT_FOUND: "There is nothing here",
    HTTPStatus.METHOD_NOT_ALLOWED: "That does not work here",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "That is too large",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong",
    HTTPStatus.SERVICE_UNAVAILABLE: "That is not available right now",
}
OTHER_TITLE = "That did not work"
MAX_TITLE_CHARACTERS = 90
MAX_QUERY_CHARACTERS = 100
MAX_SEGMENTS = 8  # of an address, from its end, that may be the name that was rejected
NO_PAGE = re.compile(r"Page not found: (.*)", re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
DID_YOU_MEAN = re.compile(r"\s?Did you mean '?([\w./-]*\w)'?\??")
CUSTOM_SUFFIX = re.compile(r"__\w{1,3}$")  # of names in Salesforce
QUOTED = re.compile(r"'([^']+)'")
SEPARATORS = re.compile(r"[-_.+#\s]+")
IDENTIFIER = re.compile(r"[0-9a-f-]{32,}|\d+|[a-zA-Z0-9]{15,18}")
EXTENSION = re.compile(r"\.[a-z]{1,5}$")


@dataclass(frozen=True)
class Problem:
    """An error page: its title and text, what to search for instead, the nearest name, small print."""

    title: str
    text: str
    status: int
    path: str
    at: datetime
    query: str = ""
    meant: str = ""
    meant_address: str = ""
    can_repeat: bool = False

    @property
    def is_missing(self) -> bool:
        """Return whether something was not found."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def name(self) -> str:
        """Return the last part of the address."""
        return _shorten(unquote(self.path).rstrip("/").rpartition("/")[2])

    @property
    def exact_time(self) -> str:
        """Return when it happened."""
        return f"{self.at.day} {self.at:%B %Y, %H:%M:%S} UTC"

    @property
    def details(self) -> str:
        """Return the facts that help to find the cause."""
        return f"{self.status} {self.path}\n{self.title}. {self.text}\n{self.exact_time}, Bedstone {__version__}"


def describe_problem(status: int, message: str, path: str, method: str) -> Problem:
    """Return the page for an error with a message for people."""
    title, text = _split(status, message)
    meant = DID_YOU_MEAN.search(message) if not NO_PAGE.fullmatch(message) else None  # that one is only the address
    address = _replace_segment(path, message, meant[1]) if meant and status == HTTPStatus.NOT_FOUND else ""
    return Problem(
        title,
        text.replace(meant[0].strip(), "").strip() if meant and address else text,
        status,
        path,
        datetime.fromtimestamp(time.time(), UTC),
        query=_query(path, message) if status == HTTPStatus.NOT_FOUND else "",
        meant=meant[1] if meant and address else "",
        meant_address=address,
        can_repeat=method == "GET" and status >= HTTPStatus.INTERNAL_SERVER_ERROR,
    )


def _split(status: int, message: str) -> tuple[str, str]:
    """Return a title and a text: what is missing is the title, other errors have a title of their own."""
    if found := NO_PAGE.fullmatch(message):
        return f"Page not found: {_shorten(found[1])}", "The address may have a typo, or the page was removed."
    title = TITLES.get(HTTPStatus(status), OTHER_TITLE)
    first, *rest = SENTENCE_END.split(message, maxsplit=1)
    if status != HTTPStatus.NOT_FOUND or not first or len(first) > MAX_TITLE_CHARACTERS:
        return title, message
    return first.removesuffix("."), " ".join(rest)


def _shorten(path: str) -> str:
    return path if len(path) <= MAX_TITLE_CHARACTERS else f"{path[:MAX_TITLE_CHARACTERS]}…"


def _replace_segment(path: str, message: str, name: str) -> str:
    """Return the address with the nearest name in place of the one that the message rejects."""
    for rejected in QUOTED.findall(message):  # a name of several segments, as files of a corpus have
        if rejected != name and path.endswith(f"/{rejected}"):
            return local_path(quote(path.removesuffix(rejected) + name))
    parts = path.split("/")
    for number in range(len(parts) - 1, max(0, len(parts) - 1 - MAX_SEGMENTS), -1):
        if parts[number] and re.search(rf"\b{re.escape(parts[number])}\b", message) and parts[number] != name:
            return local_path("/".join(quote(part) for part in [*parts[:number], name, *parts[number + 1 :]]))
    return ""


def _query(path: str, message: str) -> str:
    """Return the words of the name that was asked for, to search for; nothing for an id."""
    names = [part for part in unquote(path).split("/") if part]
    asked = names[-1:] if NO_PAGE.fullmatch(message) else [part for part in names if part in message]
    if not asked and (quoted := QUOTED.search(message)):
        asked = [quoted[1].rpartition("/")[2]]
    if not asked or IDENTIFIER.fullmatch(asked[-1]):
        return ""
    words = SEPARATORS.sub(" ", CUSTOM_SUFFIX.sub("", EXTENSION.sub("", asked[-1]))).strip()
    return words[:MAX_QUERY_CHARACTERS]
