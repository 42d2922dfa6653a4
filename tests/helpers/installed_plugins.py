"""A fixture for tests that install packages with entry points of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stepscope import plugins


@pytest.fixture
def new_plugins() -> Iterator[None]:
    """What is installed is found anew in this test, and forgotten after it."""
    plugins.forget()
    yield
    plugins.forget()
