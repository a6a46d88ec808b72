"""Fixtures: a running S3 server, and the contents of a test in its bucket instead of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.s3.server import S3Server, s3_server
from wms.core.storage.current import close_stores

_numbers = count(1)


@pytest.fixture(scope="session")
def s3(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One server for all tests of a process; each takes a prefix of its own."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server, settings: Any) -> Iterator[str]:
    """The store of contents is a bucket; the prefix of its keys."""
    prefix = f"test-{next(_numbers)}"
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_S3": s3.settings(prefix)}
    yield prefix
    close_stores()
