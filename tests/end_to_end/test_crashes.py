"""A server that is killed loses nothing it acknowledged; `make soak` does this for longer."""

from soak.knowledge import soak


def test_a_killed_server_loses_nothing() -> None:
    soak(kills=4, seed=3)
