from pathlib import Path

import pytest

from tests.server.nodes.cluster import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """What its processes still run ends with the loop of the test."""
    return Cluster(tmp_path)
