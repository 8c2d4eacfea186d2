"""What the tests of the examples share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.post import post


@pytest.fixture(autouse=True)
def _fresh_post_office() -> Iterator[None]:
    post.letters.clear()
    post.requests.clear()
    post.closed_for = 0
    yield
    post.closed_for = 0
