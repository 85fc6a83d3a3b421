"""Slow down clients that guess the token: after some wrong ones, each must wait longer than the one before."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv6Address, ip_address

FORGET_SECONDS = 15 * 60
MAX_ADDRESSES = 10_000
MAX_DIGESTS = 16  # wrong tokens of one address that are recognised when they are repeated
MAX_TOTAL = 100  # wrong tokens from all addresses
TOTAL_SECONDS = 60
IPV6_NETWORK_BITS = 64  # one customer has at least this network


@dataclass
class _Failures:
    count: int = 0
    last: float = 0.0
    wait_until: float = 0.0
    digests: deque[bytes] = field(default_factory=lambda: deque(maxlen=MAX_DIGESTS))


class Attempts:
    """Wrong tokens by address.

    An address waits after `free` different wrong tokens: 1 s, 2 s, 4 s and so on. While it waits no token of it is
    compared, so that guesses are of no use. A client that repeats an old token does not guess: it makes no one wait
    who shares its address. If there are many wrong tokens from all over, only addresses that have logged in before are
    heard. The wait is bounded, and attempts during it do not extend it.
    """

    def __init__(
        self, free: int = 5, max_wait_seconds: float = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._free = free
        self._max_wait = max_wait_seconds
        self._clock = clock
        self._failures: OrderedDict[str, _Failures] = OrderedDict()
        self._welcome: OrderedDict[str, None] = OrderedDict()
        self._recent: deque[float] = deque(maxlen=MAX_TOTAL)

    def wait_seconds(self, address: str) -> float:
        """Return how long an address must wait before its next attempt; 0 if it need not."""
        now, key = self._clock(), _network(address)
        found = self._failures.get(key)
        own = found.wait_until - now if found else 0.0
        shared = 0.0
        if len(self._recent) == MAX_TOTAL and key not in self._welcome:
            shared = min(self._recent[0] + TOTAL_SECONDS - now, self._max_wait)
        return max(own, shared, 0.0)

    def record_failure(self, address: str, token: str) -> None:
        """Count a wrong token, once."""
        now, key = self._clock(), _network(address)
        found = self._failures.pop(key, None) or _Failures()
        if now - found.last > FORGET_SECONDS:
            found = _Failures()
        self._failures[key] = found
        digest = sha256(token.encode(errors="replace")).digest()
        if digest in found.digests:
            return
        found.digests.append(digest)
        found.count, found.last = found.count + 1, now
        if found.count >= self._free:
            doublings = min(found.count - self._free, 30)
            found.wait_until = now + min(2.0**doublings, self._max_wait)
        self._recent.append(now)
        _trim(self._failures)

    def record_success(self, address: str) -> None:
        """Remember an address that knows the token. Its wrong ones still count: others may share the address."""
        key = _network(address)
        self._welcome[key] = None
        self._welcome.move_to_end(key)
        _trim(self._welcome)


def _trim(entries: "OrderedDict[str, _Failures] | OrderedDict[str, None]") -> None:
    while len(entries) > MAX_ADDRESSES:
        entries.popitem(last=False)


@lru_cache(maxsize=1_000)
def _network(address: str) -> str:
    """Return the address, or the network of an IPv6 address: its owner can use all addresses in it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or f"{int(parsed) >> IPV6_NETWORK_BITS:x}/{IPV6_NETWORK_BITS}")
