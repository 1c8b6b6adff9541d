"""What ``extents/api.py`` promises, on an object store."""

from pathlib import Path

import pytest

from kyanite.extents.s3 import seals
from tests.extents.s3.bucket_site import PrivateBucket
from tests.extents.suite import ExtentsSuite
from tests.seaweed_server import SeaweedServer


class TestS3Extents(ExtentsSuite):
    @pytest.fixture
    def site(self, seaweed: SeaweedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PrivateBucket:
        monkeypatch.setattr(seals, "PUBLISH_SECONDS", 0.05)
        return PrivateBucket(seaweed, tmp_path)
