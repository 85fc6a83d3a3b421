"""The model behind docs/scaling.md agrees with formulas where there are some."""

import math

import pytest
from scale_model import (
    DETECT_MS,
    MEASURED,
    TIMEOUT_MS,
    Plan,
    computed_availability,
    constant,
    erlang_c,
    exponential,
    lognormal,
    search_ms,
    simulate,
    simulate_availability,
)

QUERIES = 40_000


@pytest.mark.parametrize(("cores", "load"), [(1, 0.5), (1, 0.8), (4, 0.7), (8, 0.8)])
def test_a_node_is_a_queue_of_the_textbook(cores: int, load: float) -> None:
    """M/M/c: Erlang's formula gives the mean wait."""
    found = simulate(Plan(1, 1, cores, load * cores * 100, exponential(10.0)), QUERIES)
    wait = erlang_c(cores, load * cores) * 10.0 / (cores * (1 - load))
    assert found.mean == pytest.approx(10.0 + wait, rel=0.07)
    assert len(found.latencies) == QUERIES * 0.9
    if cores == 1:  # latencies are exponential then
        assert found.percentile(0.95) == pytest.approx(math.log(20) * (10.0 + wait), rel=0.1)


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.5])
def test_times_that_vary_otherwise_wait_as_long_as_computed(spread: float) -> None:
    """M/G/1: the formula of Pollaczek and Khinchine gives the mean wait."""
    draw = lognormal(10.0, spread) if spread else constant(10.0)
    found = simulate(Plan(1, 1, 1, 60.0, draw), QUERIES)
    wait = 0.6 * (1 + spread**2) / (2 * (1 - 0.6)) * 10.0
    assert found.mean == pytest.approx(10.0 + wait, rel=0.1)


def test_the_slowest_shard_decides() -> None:
    """Without queues, the longest of n exponential times is 1 + 1/2 + ... + 1/n means."""
    found = simulate(Plan(16, 1, 10**6, 100.0, exponential(10.0), network_ms=1.0), 5_000)
    assert found.mean == pytest.approx(1.0 + 10.0 * sum(1 / number for number in range(1, 17)), rel=0.02)


def test_the_front_end_has_a_queue_of_its_own() -> None:
    found = simulate(Plan(1, 1, 10**6, 80.0, constant(5.0), exponential(10.0), 1), QUERIES)
    assert found.mean == pytest.approx(5.0 + 10.0 / (1 - 0.8), rel=0.1)


def test_replicas_share_the_load() -> None:
    alone = simulate(Plan(1, 1, 4, 320.0, exponential(10.0)), QUERIES)
    shared = simulate(Plan(1, 2, 4, 640.0, exponential(10.0)), QUERIES)
    one_queue = 10.0 + erlang_c(8, 6.4) * 10.0 / (8 * 0.2)  # better than that two nodes cannot be
    assert one_queue * 0.97 < shared.mean < alone.mean


def test_a_failure_costs_a_timeout_and_no_answer_while_there_is_a_replica() -> None:
    plan = Plan(4, 2, 8, 100.0, constant(10.0))
    quiet = simulate(plan, 4_000)
    assert quiet.failed == 0
    assert quiet.percentile(0.99) == pytest.approx(10.0, abs=2.0)
    hurt = simulate(Plan(4, 2, 8, 100.0, constant(10.0), failures=[(20_000.0, 1, 0)]), 4_000)
    late = [item for item in hurt.latencies if item >= TIMEOUT_MS]
    assert hurt.failed == 0
    assert len(hurt.latencies) == len(quiet.latencies)
    assert 5 <= len(late) <= DETECT_MS / 1000 * 100, "only those that asked it before it was known to be down"
    assert max(late) < TIMEOUT_MS + 20.0
    both = simulate(Plan(4, 2, 8, 100.0, constant(10.0), failures=[(20_000.0, 1, 0), (20_000.0, 1, 1)]), 4_000)
    assert both.failed == pytest.approx(2_000, rel=0.1), "half of the time there is nobody"
    assert both.failed + len(both.latencies) == pytest.approx(4_000, abs=400)


@pytest.mark.parametrize(("shards", "replicas", "repair"), [(1, 1, 0.5), (8, 2, 0.2), (5, 3, 0.5)])
def test_availability_is_as_computed(shards: int, replicas: int, repair: float) -> None:
    minutes = 24 * 60.0
    found = simulate_availability(shards, replicas, minutes, repair * minutes, years=60)
    assert 1 - found == pytest.approx(1 - computed_availability(shards, replicas, minutes, repair * minutes), rel=0.07)


def test_service_times_are_those_that_were_measured() -> None:
    for chunks, milliseconds in MEASURED:
        assert search_ms(chunks) == search_ms(chunks, "log") == pytest.approx(milliseconds)
    (_, low), (_, high) = MEASURED[-2:]
    assert search_ms(10**6) == pytest.approx(high * high / low)
    assert search_ms(10**6, "log") == pytest.approx(high + high - low)
    times = [search_ms(10**power) for power in range(3, 8)]
    assert times == sorted(times)


def test_equal_seeds_give_equal_runs() -> None:
    plan = Plan(4, 2, 2, 100.0, lognormal(10.0, 0.5))
    assert simulate(plan, 1_000, 3) == simulate(plan, 1_000, 3)
    assert simulate(plan, 1_000, 3) != simulate(plan, 1_000, 4)
