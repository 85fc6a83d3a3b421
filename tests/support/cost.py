"""CPU time in units of fixed work that is measured in turns with it: a slow or busy machine slows both."""

import json
import time
from collections.abc import Awaitable, Callable

ROUNDS = 10
TEXTS = [
    {"id": number, "text": f"passage {number} " * 10, "facets": {"kind": "a", "page": number}} for number in range(800)
]


async def relative_cost(call: Callable[[], Awaitable[object]], rounds: int = ROUNDS) -> float:
    """Return what a call costs at best, divided by what the fixed work costs at best: about 5 ms on a quiet machine."""
    costs, units = [], []
    for _ in range(rounds):
        units.append(_measure_unit())
        started = time.process_time()
        await call()
        costs.append(time.process_time() - started)
    return min(costs) / min(units)


def _measure_unit() -> float:
    started = time.process_time()
    for _ in range(2):
        kept = json.loads(json.dumps(TEXTS))
        assert sum(len(item["text"].split()) for item in kept) == 20 * len(TEXTS)
    return time.process_time() - started
