"""Fixtures every test may use."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

# The same examples in every run: what fails in CI fails here.
set_hypothesis_home_dir(Path(__file__).parents[1] / ".cache" / "hypothesis")
settings.register_profile("bedstone", database=None, deadline=None, derandomize=True)
settings.load_profile("bedstone")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
