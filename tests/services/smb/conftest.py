"""An SMB service in memory, with one share."""

from pathlib import Path

import pytest

from tests.services.smb.service import SmbService


@pytest.fixture
def smb(tmp_path: Path) -> SmbService:
    return SmbService(tmp_path)
