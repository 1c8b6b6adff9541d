"""Stores that earlier versions wrote: this version opens each, finds no damage, and serves it byte for byte.

Every store in this folder is a file ``X.tar.xz``, where X is the commit that wrote it, beside the answers that this
commit gave (``X.json.xz``, see ``recorded.py``). The folder ``X`` has the script that wrote both.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.server_process import ServerProcess
from tests.stores.recorded import Answer, Client, Recorded, load, unpack

STORES = sorted(Path(__file__).parent.glob("*.tar.xz"))


class Difference(NamedTuple):
    """Answers that have changed on purpose since a store was recorded."""

    requests: str
    """A regular expression that matches the whole text of the requests concerned."""
    now: Callable[[Answer], Answer]
    """Makes the answer that is expected now from the recorded one."""
    reason: str


def with_soft_delete_and_website_off(answer: Answer) -> Answer:
    body = answer.body
    for element in ("DeleteRetentionPolicy", "StaticWebsite"):
        pattern = f"<{element}><Enabled>true</Enabled>.*</{element}>"
        body = re.sub(pattern, f"<{element}><Enabled>false</Enabled></{element}>", body)
    return replace(answer, body=body, headers={**answer.headers, "content-length": str(len(body.encode()))})


def _without_a_body(answer: Answer) -> Answer:
    """An error that names neither a type nor a length."""
    if answer.status < 400:
        return answer
    dropped = {"content-type", "content-length"}
    kept = {name: value for name, value in answer.headers.items() if name not in dropped}
    return replace(answer, headers={**kept, "transfer-encoding": "chunked"})


def _varying_error(answer: Answer) -> Answer:
    """An error to a read of a service with rules for other origins."""
    return answer if answer.status < 300 else replace(answer, headers={**answer.headers, "vary": "Origin"})


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        r"GET blob:/acme/\?restype=service&comp=properties.*",
        with_soft_delete_and_website_off,
        "Earlier versions let clients turn these on and did nothing of the kind.",
    ),
    Difference("(GET|HEAD) [a-z]+:/acme/.*", _varying_error, "errors have the headers of CORS too"),
    Difference("HEAD .*", _without_a_body, "the service names no body in an error to HEAD"),
)

CLEAN_UP_SECONDS_MAX = 20.0
"""How long the server may take to clean up after the process that wrote the store."""

PAUSE_SECONDS = 1.0
"""How long background work gets for whatever else it finds."""


@pytest.mark.parametrize("archive", STORES, ids=lambda path: path.name)
def test_a_store_of_an_earlier_version_is_served_as_it_was(archive: Path, tmp_path: Path) -> None:
    unpack(archive, tmp_path)
    verify(tmp_path)
    recording = load(archive.with_name(archive.name.replace(".tar.xz", ".json.xz")))
    with ServerProcess(*recording.server_options(), location=tmp_path) as server:
        with Client(server.endpoints, recording.accounts) as client:
            check(client, recording.reads)
            check_eventually(client, recording.reads_after_clean_up)
            time.sleep(PAUSE_SECONDS)
            check(client, recording.reads)
            check(client, recording.writes)
            time.sleep(PAUSE_SECONDS)
        assert [line for line in server.log if line["level"] == "error"] == []
        assert server.stop() == 0
    verify(tmp_path)


def test_there_are_stores() -> None:
    assert STORES


def verify(location: Path) -> None:
    command = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(location)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def check_eventually(client: Client, recorded: Iterable[Recorded]) -> None:
    deadline = time.monotonic() + CLEAN_UP_SECONDS_MAX
    while differences(client, recorded) and time.monotonic() < deadline:
        time.sleep(0.1)
    check(client, recorded)


def check(client: Client, recorded: Iterable[Recorded]) -> None:
    found = differences(client, recorded)
    assert not found, f"{len(found)} answers differ, the first of them:\n" + "\n".join(found[:5])


def differences(client: Client, recorded: Iterable[Recorded]) -> list[str]:
    """The requests that are answered otherwise than expected, with both answers."""
    found = []
    for each in recorded:
        text, expected = str(each.request), each.answer
        for difference in DIFFERENCES:
            if re.fullmatch(difference.requests, text):
                expected = difference.now(expected)
        answer = client.send(each.request)
        if answer != expected:
            found.append(f"{text}\n  expected {expected}\n  answered {answer}")
    return found
