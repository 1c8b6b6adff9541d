import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from kyanite.server.derived_keys import derive_key


@pytest.mark.parametrize("length", [16, 32])
@pytest.mark.parametrize("secret", [b"", b"a secret", bytes(range(256))])
def test_keys_are_those_of_hkdf(secret: bytes, length: int) -> None:
    library = HKDF(SHA256(), length=length, salt=None, info=b"a purpose")
    assert derive_key(secret, b"a purpose", length) == library.derive(secret)
