"""The example with a token runs unchanged, with the environment that it describes."""

import subprocess
import sys

from tests.sdk.issuer.environment import PATIENCE_SECONDS
from tests.sdk.test_examples import EXAMPLES, WITH_TOKENS


def test_the_example_with_a_token(environment: dict[str, str]) -> None:
    needed = ("BLOB_URL", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "REQUESTS_CA_BUNDLE")
    (name,) = WITH_TOKENS
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        env={each: environment[each] for each in needed},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "read with a token: 'written with a token'" in ran.stdout
