"""Files in a bucket of Amazon S3, or of any service that has its interface."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote, unquote

import obstore
from obstore.exceptions import BaseError, PreconditionError
from obstore.store import S3Store

from bedstone.errors import InvalidSetting
from bedstone.store.blob_cache import BlobCache, name_copy
from bedstone.store.blobs import Blob, BlobDamaged, BlobsUnavailable, check_key
from bedstone.store.digests import copy_hashed
from bedstone.store.s3.address import Address
from bedstone.store.s3.credentials import find_file_credentials, find_region
from bedstone.store.s3.errors import has_code, translate_errors

PART_BYTES = 8 * 2**20  # of a file: each part is a request with a time limit of its own
MAX_PARTS_AT_ONCE = 4
CONNECT_SECONDS = 3
REQUEST_SECONDS = 30
CHECK_SECONDS = 5
RETRIES: Any = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=10),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=2), "base": 2},
}
PAUSE_SECONDS = 1.0  # while the service does not answer, callers fail at once and one of them tries again
PROBE = ".probe"
DIGEST = "sha256"  # in the metadata of each object
SAFE = " !$'()+,=@~"  # in a name: these stay as they are, so that other tools show what a folder would


class S3Blobs:
    """A bucket, or what is below a prefix in it. Readers that need a file get a copy from a cache of this machine."""

    is_shared = True

    def __init__(self, address: Address, cache: BlobCache) -> None:
        self._address = address
        self._cache = cache
        self._store = _connect(address, REQUEST_SECONDS, RETRIES)
        self._prober = _connect(address, CHECK_SECONDS, {"max_retries": 0})
        self._state = threading.Lock()
        self._retry_at = 0.0
        self._reason: str | None = None  # why the service does not answer

    @classmethod
    def open(cls, address: str, cache: Path) -> Self:
        """Use the bucket at an address such as `s3://bucket/prefix?endpoint=https://s3.example.org`."""
        return cls(Address.parse(address), BlobCache(cache))

    @property
    def place(self) -> str:
        """Return the bucket with its prefix."""
        return self._address.place

    def put(
        self,
        key: str,
        content: IO[bytes],
        check_size: Callable[[int], None] = lambda _: None,
        *,
        keeps_copy: bool = True,
    ) -> Blob:
        """Upload a file in parts, and compare what arrived; the copy is often read next."""
        name = _encode(key)
        with self._cache.draft() as draft:
            with draft.open("wb") as copy:
                size, digest = copy_hashed(content, copy, check_size)
            with self._calling():
                obstore.put(
                    self._store,
                    name,
                    draft,
                    attributes={DIGEST: digest},
                    chunk_size=PART_BYTES,
                    max_concurrency=MAX_PARTS_AT_ONCE,
                )
            stored = self.find(key)
            if stored is None or stored.size != size or stored.digest not in (digest, None):
                raise BlobDamaged(f"{key} did not arrive completely in {self.place}. Try again.")
            if keeps_copy:
                self._cache.keep(draft, name_copy(digest, key), digest)
        return Blob(key, size, stored.modified, digest)

    def write(self, key: str, data: bytes, *, durable: bool = True) -> None:
        """Upload a small file; the service compares it with the digest in the signature."""
        with self._calling():
            obstore.put(self._store, _encode(key), data, attributes={DIGEST: sha256(data).hexdigest()})

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """Return a file, or a part of it; a whole one is compared with its digest."""
        name = _encode(key)
        if size is not None:
            return self._read_range(name, start, start + size)
        with self._calling():
            result = obstore.get(self._store, name, options={"range": {"offset": start}} if start else None)
            data = bytes(result.bytes())
        digest = result.attributes.get(DIGEST)
        if not start and digest is not None and sha256(data).hexdigest() != digest:
            raise self._make_damage_error(key)
        return data

    def stream(self, key: str) -> Iterator[bytes]:
        """Iterate over the content of a file, part by part; a file that is replaced meanwhile is damaged."""
        found = self._head(_encode(key))
        if found is None:
            raise FileNotFoundError(2, "No such file in the bucket", key)
        yield from self._parts(key, found.meta["size"], found.meta.get("e_tag"))

    def find(self, key: str) -> Blob | None:
        """Return what is known of a file."""
        found = self._head(_encode(key))
        if found is None:
            return None
        return _describe(found.meta, found.attributes.get(DIGEST))

    def local(self, key: str, digest: str | None = None) -> Path:
        """Return a copy with the content, from the cache or fetched now; it is compared with its digest."""
        check_key(key)
        if digest is not None and (path := self._cache.find(name_copy(digest, key), digest)) is not None:
            return path
        found = self._head(_encode(key))
        if found is None:
            raise FileNotFoundError(2, "No such file in the bucket", key)
        size, version = found.meta["size"], found.meta.get("e_tag")
        expected = digest or found.attributes.get(DIGEST)
        unknown = sha256(f"{key}\0{version}\0{size}".encode()).hexdigest()  # another tool put it there
        name = name_copy(expected or unknown, key)
        if (path := self._cache.find(name, expected)) is not None:
            return path
        with self._cache.draft() as draft:
            actual = sha256()
            with draft.open("wb") as copy:
                for part in self._parts(key, size, version):
                    actual.update(part)
                    copy.write(part)
            if expected is not None and actual.hexdigest() != expected:
                raise self._make_damage_error(key)
            return self._cache.keep(draft, name, expected)

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """Iterate over the files whose keys begin with a prefix, a thousand with each request."""
        folder = prefix.rpartition("/")[0]
        with self._calling():
            pages = iter(obstore.list(self._store, _encode(folder) if folder else None, chunk_size=1_000))
        while True:
            with self._calling():
                page = next(pages, None)
            if page is None:
                return
            blobs = (_describe(item, None) for item in page)
            yield from (blob for blob in blobs if blob.key.startswith(prefix) and blob.key != PROBE)

    def folders(self, folder: str = "") -> Iterator[str]:
        """Iterate over the names of the folders in a folder."""
        with self._calling():
            found = obstore.list_with_delimiter(self._store, _encode(folder) if folder else None)
        yield from sorted(unquote(prefix.rpartition("/")[2]) for prefix in found["common_prefixes"])

    def has_folder(self, folder: str) -> bool:
        """Return whether a folder has files."""
        return next(self.list(f"{folder}/"), None) is not None

    def delete(self, key: str) -> None:
        """Delete a file."""
        with self._calling():
            obstore.delete(self._store, [_encode(key)])

    def delete_folder(self, folder: str) -> None:
        """Delete the files of a folder, a thousand with each request."""
        self._cache.delete_scratch(check_key(folder))
        names = [_encode(blob.key) for blob in self.list(f"{folder}/")]
        if names:
            with self._calling():
                obstore.delete(self._store, names)

    def move_folder(self, folder: str, target: str) -> None:
        """Copy the files of a folder inside the bucket, and delete them when all were copied."""
        names = {_encode(blob.key): _encode(f"{target}{blob.key[len(folder) :]}") for blob in self.list(f"{folder}/")}
        with self._calling():
            for name, new in names.items():
                obstore.copy(self._store, name, new)
            if names:
                obstore.delete(self._store, list(names))

    def scratch(self, key: str) -> Path:
        """Return a path on this machine."""
        return self._cache.scratch(check_key(key))

    def check_writable(self) -> None:
        """Upload a file and delete it; this does not wait as long as other calls do."""
        with self._calling(is_probe=True):
            obstore.put(self._prober, PROBE, b"bedstone")
            obstore.delete(self._prober, [PROBE])

    def close(self) -> None:
        """Connections close when nothing uses them."""

    def _head(self, name: str) -> Any:
        """Return what is known of an object; None if it does not exist, though its bucket does."""
        try:
            with self._calling():
                return obstore.get(self._store, name, options={"head": True})
        except FileNotFoundError:
            with self._calling():  # without a body, the answer does not say whether the bucket exists
                next(iter(obstore.list(self._store, name, chunk_size=1)), None)
            return None

    def _parts(self, key: str, size: int, version: str | None) -> Iterator[bytes]:
        for start in range(0, size, PART_BYTES):
            options: Any = {"range": (start, min(start + PART_BYTES, size))}
            if version:
                options["if_match"] = version
            with self._calling():
                try:
                    data = bytes(obstore.get(self._store, _encode(key), options=options).bytes())
                except PreconditionError:
                    raise BlobDamaged(f"{key} in {self.place} was replaced while it was read. Try again.") from None
            yield data

    def _read_range(self, name: str, start: int, end: int) -> bytes:
        if end <= start:
            return b""
        with self._calling():
            try:
                return bytes(obstore.get_range(self._store, name, start=start, end=end))
            except BaseError as error:
                if has_code(error, "InvalidRange"):  # it is shorter
                    return b""
                raise

    def _make_damage_error(self, key: str) -> BlobDamaged:
        return BlobDamaged(f"{key} in {self.place} is not what was stored there: its digest differs.")

    @contextmanager
    def _calling(self, *, is_probe: bool = False) -> Iterator[None]:
        """Translate errors; while the service does not answer, fail at once."""
        with self._state:
            if self._reason is not None and time.monotonic() < self._retry_at and not is_probe:
                raise BlobsUnavailable(self._reason)
            if self._reason is not None:
                self._retry_at = time.monotonic() + PAUSE_SECONDS
        try:
            with translate_errors(self.place, self._address.endpoint):
                yield
        except BlobsUnavailable as error:
            with self._state:
                self._reason = error.message if error.is_away else None
                self._retry_at = time.monotonic() + PAUSE_SECONDS
            raise
        with self._state:
            self._reason = None


def _connect(address: Address, seconds: int, retries: Any) -> S3Store:
    """Return the library's access to a bucket; nothing is asked yet."""
    options: Any = {"connect_timeout": timedelta(seconds=CONNECT_SECONDS), "timeout": timedelta(seconds=seconds)}
    if address.endpoint is not None and address.endpoint.startswith("http:"):
        options["allow_http"] = True
    if certificates := os.environ.get("AWS_CA_BUNDLE"):
        options["root_certificate"] = Path(certificates).read_bytes()
    given = {"endpoint": address.endpoint, "region": address.region or find_region()}
    config: Any = {name: value for name, value in given.items() if value is not None}
    try:
        return S3Store(
            address.bucket,
            prefix=address.prefix or None,
            config=config,
            client_options=options,
            retry_config=retries,
            credential_provider=find_file_credentials(),
        )
    except (BaseError, ValueError):  # what the library says may contain values of the environment
        raise InvalidSetting(f"The bucket {address.place} cannot be opened: check its address and AWS_*.") from None


def _encode(key: str) -> str:
    """Return the name of an object: a key, with the characters encoded that services treat differently."""
    return "/".join(quote(name, safe=SAFE) for name in check_key(key).split("/"))


def _describe(meta: Any, digest: str | None) -> Blob:
    return Blob(unquote(meta["path"]), meta["size"], meta["last_modified"].timestamp(), digest)
