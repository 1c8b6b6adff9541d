"""The harness as a fixture: each test has a store of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kyanite.services.files.service import file_service
from kyanite.services.queue.service import queue_service
from kyanite.services.table.service import table_service
from tests.services.harness import Harness


@pytest.fixture
def blobs(tmp_path: Path) -> Iterator[Harness]:
    harness = Harness(tmp_path)
    yield harness
    harness.close()


@pytest.fixture
def queues(tmp_path: Path) -> Iterator[Harness]:
    harness = Harness(tmp_path, queue_service, "queue")
    yield harness
    harness.close()


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Harness]:
    harness = Harness(tmp_path, table_service, "table")
    yield harness
    harness.close()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Harness]:
    harness = Harness(tmp_path, file_service, "file")
    yield harness
    harness.close()
