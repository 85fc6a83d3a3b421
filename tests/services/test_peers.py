"""Servers that share a store tell each other who they are, who logged out, and what changed."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
from mcp.server.subscriptions import PromptsListChanged, ResourceUpdated, ServerEvent, ToolsListChanged

from bedstone.errors import Unavailable
from bedstone.server.changes import RelayedBus, describe_event, parse_event
from bedstone.services.peers import Peer, Peers, Work, has_workers, list_peers
from bedstone.store.notes import SERVERS, Notes
from bedstone.transports.page_sessions import PageSessions, SharedSessions
from support.postgres import PostgresServer

TOKEN = "a-long-made-up-token"


@pytest.fixture
async def pair(postgres: PostgresServer) -> AsyncIterator[tuple[Peers, Peers]]:
    address = postgres.address()
    first, second = Peers(address), Peers(address)
    await first.start(Peer.of_this_process("answers", "127.0.0.1:1"))
    await second.start(Peer.of_this_process("work"), lambda: Work(3, 2, ("a.pdf",), ("vectors",)))
    yield first, second
    await first.stop()
    await second.stop()


async def wait_for(find: Callable[[], Any]) -> Any:
    with anyio.fail_after(20):
        while not (found := find()):  # noqa: ASYNC110 - what is waited for happens in another thread
            await anyio.sleep(0.02)
    return found


def notes_of(peers: Peers) -> Notes:
    assert peers._notes is not None  # noqa: SLF001
    return peers._notes  # noqa: SLF001


async def test_they_see_each_other_and_what_each_does(pair: tuple[Peers, Peers]) -> None:
    first, second = pair
    answers, works = list_peers(notes_of(first))
    assert (answers.role, answers.address, answers.work) == ("answers", "127.0.0.1:1", Work())
    assert (works.role, works.work) == ("work", Work(3, 2, ("a.pdf",), ("vectors",)))
    assert has_workers(notes_of(first))
    await second.stop()
    assert [peer.id for peer in list_peers(notes_of(first))] == [answers.id]
    assert not has_workers(notes_of(first))
    newer = json.dumps({"id": "n", "role": "all", "colour": "red", "work": {"applied": 1, "taste": "sweet"}})
    notes_of(first).put(f"{SERVERS}n", newer, 60)
    assert Peer("n", "all", work=Work(1)) in list_peers(notes_of(first))


async def test_a_login_is_for_all_and_so_is_its_end(pair: tuple[Peers, Peers]) -> None:
    first, second = (PageSessions(TOKEN, SharedSessions(peers)) for peers in pair)
    kept, ended = first.begin(), first.begin()
    assert second.is_valid(kept)
    assert second.is_valid(ended)
    second.end(ended)
    assert not second.is_valid(ended)
    await wait_for(lambda: not first.is_valid(ended))
    assert first.is_valid(kept)
    assert not PageSessions("another-long-made-up-token", SharedSessions(pair[0])).is_valid(kept)


async def test_without_the_store_nothing_is_valid_and_no_logout_is_claimed() -> None:
    peers = Peers("postgresql://127.0.0.1:9/none")
    sessions = PageSessions(TOKEN, SharedSessions(peers))
    assert not sessions.is_valid(sessions.begin())
    with pytest.raises(Unavailable, match="You are not logged out"):
        peers.end_session("name", 60)


async def test_with_a_secret_of_its_own_a_server_accepts_no_login_before_it_knows_which_ended(
    postgres: PostgresServer,
) -> None:
    address, secret = postgres.address(), "a-long-made-up-secret"
    away = PageSessions(TOKEN, SharedSessions(Peers("postgresql://127.0.0.1:9/none", secret)))
    peers = Peers(address, secret)
    await peers.start(Peer.of_this_process("answers"))
    there = PageSessions(TOKEN, SharedSessions(peers))
    cookie = there.begin()
    assert there.is_valid(cookie)
    there.end(cookie)
    assert not there.is_valid(cookie)
    assert not away.is_valid(cookie)
    await peers.stop()


async def test_events_reach_the_listeners_of_all_servers_once(pair: tuple[Peers, Peers]) -> None:
    heard: list[tuple[str, ServerEvent]] = []

    def bus(name: str, peers: Peers, topic: str = "docs") -> RelayedBus:
        async def deliver(event: ServerEvent) -> None:
            await found.publish_here(event)

        found = RelayedBus(peers, topic, deliver)
        found.subscribe(lambda event: heard.append((name, event)))
        return found

    first, other = bus("first", pair[0]), bus("other", pair[1], "kb")
    bus("second", pair[1])
    events: list[ServerEvent] = [ToolsListChanged(), PromptsListChanged(), ResourceUpdated("docs://a b")]
    for event in events:
        await first.publish(event)
    await wait_for(lambda: len(heard) >= 6)
    await other.publish(ToolsListChanged())
    await anyio.sleep(0.3)
    assert [event for name, event in heard if name == "first"] == events
    second = [describe_event(event) for name, event in heard if name == "second"]
    assert sorted(second) == sorted(describe_event(event) for event in events)
    assert [event for name, event in heard if name == "other"] == [ToolsListChanged()]
    assert parse_event("what only a newer version knows") is None


async def test_they_find_each_other_again_after_a_lost_connection(
    pair: tuple[Peers, Peers], postgres: PostgresServer
) -> None:
    first, second = (PageSessions(TOKEN, SharedSessions(peers)) for peers in pair)
    cookie = first.begin()
    await anyio.to_thread.run_sync(postgres.disconnect)

    def is_over() -> bool:
        try:
            second.end(cookie)
        except Unavailable:
            return False
        return True

    await wait_for(is_over)
    await wait_for(lambda: not first.is_valid(cookie))
