"""Garbage collection during start-up."""

import gc

import pytest

from bedstone.cli.startup import collection_paused


def test_the_collector_is_paused_and_then_ignores_what_was_built() -> None:
    frozen = gc.get_freeze_count()
    try:
        with collection_paused():
            assert not gc.isenabled()
            built = [[number] for number in range(100)]
        assert gc.isenabled()
        assert gc.get_freeze_count() >= frozen + len(built)
    finally:
        gc.unfreeze()


def test_the_collector_works_again_after_an_error() -> None:
    try:
        with pytest.raises(LookupError), collection_paused():
            raise LookupError
        assert gc.isenabled()
    finally:
        gc.unfreeze()
