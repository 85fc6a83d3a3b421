"""The address of a bucket: where it is, and how to name it. Credentials are never a part of it."""

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

from bedstone.errors import InvalidSetting

BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,62}", re.IGNORECASE)
REGION = re.compile(r"[a-z0-9-]{1,40}")
SECRETS = (
    "Credentials do not belong into the address of a bucket. Put them into AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or into ~/.aws/credentials."
)
INVALID = "Write s3://BUCKET/PREFIX, with ?endpoint=URL for a service that is not Amazon's, and &region=NAME."


@dataclass(frozen=True)
class Address:
    """Where a bucket is; `place` is what messages and logs name."""

    bucket: str
    prefix: str
    endpoint: str | None
    region: str | None

    @property
    def place(self) -> str:
        """Return the bucket with its prefix."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the parts of an address; what is wrong with one is said without repeating it."""
        try:
            parts = urlsplit(text)
            query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
            endpoint = query.pop("endpoint", None)
            service = urlsplit(endpoint) if endpoint is not None else None
            port = service.port if service is not None else None
        except ValueError:
            raise InvalidSetting(f"The address of the bucket is not valid. {INVALID}") from None
        if "@" in parts.netloc or (service is not None and "@" in service.netloc):
            raise InvalidSetting(SECRETS)
        region = query.pop("region", None)
        if unknown := sorted(query):
            hint = SECRETS if any("key" in name.lower() or "secret" in name.lower() for name in unknown) else INVALID
            raise InvalidSetting(f"The address of the bucket has an unknown parameter. {hint}")
        if not BUCKET.fullmatch(parts.netloc) or (region is not None and not REGION.fullmatch(region)):
            raise InvalidSetting(f"The address of the bucket names no bucket, or no valid region. {INVALID}")
        if service is not None and (service.scheme not in ("http", "https") or not service.hostname or port == 0):
            raise InvalidSetting(f"The endpoint of the bucket is not a URL. {INVALID}")
        prefix = unquote(parts.path).strip("/")
        if any(name in ("", ".", "..") for name in prefix.split("/")) and prefix:
            raise InvalidSetting(f"The prefix in the bucket is not valid. {INVALID}")
        return cls(parts.netloc, prefix, endpoint, region)
