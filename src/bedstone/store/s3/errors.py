"""What a bucket reports, in our words: answers of services repeat keys and signatures."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import BaseError

from bedstone.store.blobs import BlobsUnavailable

CODE = re.compile(r"<Code>(\w{1,60})</Code>")
STATUS = re.compile(r"status code: (\d{3}(?: [A-Za-z ]{1,40})?)")
DENIED = frozenset(
    {
        "AccessDenied",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "InvalidToken",
        "RequestTimeTooSkewed",
    }
)
METADATA_SERVICE = ("169.254.169.254", "169.254.170.2", "/latest/api/token")
NO_CREDENTIALS = (
    "no credentials were found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials"
)


def unavailable(place: str, endpoint: str | None, error: Exception) -> BlobsUnavailable:
    """Return the error for a bucket that cannot be read or written now."""
    text = str(error)
    found = BlobsUnavailable(f"The bucket {place} cannot be used: {_explain(text, endpoint)}.")
    found.is_away = not (CODE.search(text) or STATUS.search(text))
    return found


def has_code(error: Exception, code: str) -> bool:
    """Return whether a service answered with a code."""
    found = CODE.search(str(error))
    return found is not None and found[1] == code


@contextmanager
def translate_errors(place: str, endpoint: str | None) -> Iterator[None]:
    """Raise `FileNotFoundError` for a missing file, and `BlobsUnavailable` for everything else that fails."""
    try:
        yield
    except FileNotFoundError as error:
        if has_code(error, "NoSuchBucket"):
            raise unavailable(place, endpoint, error) from None
        raise FileNotFoundError(2, "No such file in the bucket", place) from None
    except BaseError as error:
        raise unavailable(place, endpoint, error) from None


def _explain(text: str, endpoint: str | None) -> str:
    code, status = CODE.search(text), STATUS.search(text)
    if any(name in text for name in METADATA_SERVICE):
        return NO_CREDENTIALS
    if code is not None and code[1] == "NoSuchBucket":
        return "it does not exist"
    if (code is not None and code[1] in DENIED) or (status is not None and status[1].startswith(("401", "403"))):
        return f"access is denied ({code[1] if code else status[1] if status else 'denied'})"
    if code is not None or status is not None:
        return f"it answered {code[1] if code else status[1] if status else ''}"
    service = endpoint or "the service"
    return f"{service} does not answer in time" if "timed out" in text else f"{service} does not answer"
