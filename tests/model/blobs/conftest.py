import pytest

from tests.model.blobs.store import BlobStore


@pytest.fixture
def store() -> BlobStore:
    return BlobStore()
