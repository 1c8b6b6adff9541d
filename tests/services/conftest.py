"""The harness as a fixture: each test has a store of its own."""

from pathlib import Path

import pytest

from kyanite.services.files.service import file_service
from kyanite.services.queue.service import queue_service
from kyanite.services.table.service import table_service
from tests.services.harness import Harness


@pytest.fixture
def blobs(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture
def queues(tmp_path: Path) -> Harness:
    return Harness(tmp_path, queue_service, "queue")


@pytest.fixture
def tables(tmp_path: Path) -> Harness:
    return Harness(tmp_path, table_service, "table")


@pytest.fixture
def files(tmp_path: Path) -> Harness:
    return Harness(tmp_path, file_service, "file")
