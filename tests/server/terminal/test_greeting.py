"""What ``kyanite serve`` shows on a terminal, and what programs read instead."""

import json
import re
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from kyanite.server.service_table import offered
from tests.server.terminal.terminal import OnTerminal
from tests.server_process import DEVELOPMENT_KEY, ServerProcess

PORTS = tuple(word for name in (*offered(), "console") for word in (f"--{name}-port", "0"))
KEY = "c2VjcmV0IGtleQ=="


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_people_are_greeted() -> None:
    with OnTerminal("serve", "--in-memory", *PORTS, "--log-level", "info") as screen:
        text = plain(screen.wait_for("KYANITE_LOCATION="))
        assert "Kyanite is ready. Ctrl+C stops it." in text
        connect = re.search(r"connect +(DefaultEndpointsProtocol=\S+)", text)
        assert connect is not None
        assert f"AccountKey={DEVELOPMENT_KEY};" in connect[1]
        with BlobServiceClient.from_connection_string(connect[1]) as client:
            client.create_container("seen")
        assert re.search(r"\n  blob     http://127\.0\.0\.1:\d+/devstoreaccount1 *\n", text)
        assert re.search(r"smb +smb://127\.0\.0\.1:\d+/SHARE +\(user devstoreaccount1\) *\n", text)
        assert re.search(r"Console +http://127\.0\.0\.1:\d+/", text)
        assert "memory, gone when it stops" in text
        assert "ready {" not in text
        assert re.search(r"\d\d:\d\d:\d\d\.\d{3} info +supervisor +serving form=", text)
        assert '{"time"' not in text


def test_a_secret_key_is_not_printed(tmp_path: Path) -> None:
    accounts = [
        word
        for name in ["alpha", "beta", "gamma", "delta", "epsilon"]
        for word in ("--account", f"{name}:{KEY}")
    ]
    where = ("--location", str(tmp_path / "a [store]"), "--console-port", "0", "--blob-port", "0")
    with OnTerminal("serve", *where, "--workers", "1", *accounts, "--services", "blob") as screen:
        text = plain(screen.wait_for("Data "))
        assert KEY not in text
        assert f"kyanite connection-string alpha --location '{tmp_path}/a [store]'\n" in text
        assert "and 1 more account: kyanite account list" in text
        assert "epsilon" not in text


@pytest.mark.parametrize("colours", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colours(colours: dict[str, str]) -> None:
    with OnTerminal("serve", "--in-memory", *PORTS, more=colours) as screen:
        text = screen.wait_for("KYANITE_LOCATION=")
    assert "\x1b[3" not in text


def test_json_on_a_terminal_on_request() -> None:
    with OnTerminal("serve", "--in-memory", *PORTS, "--log-format", "json") as screen:
        line = screen.wait_for('"]}\n').partition("ready ")[2]
        assert json.loads(line.partition("\n")[0])["accounts"] == ["devstoreaccount1"]
    assert '{"time": "' in screen.text


def test_programs_read_one_line_with_every_account(tmp_path: Path) -> None:
    options = (
        "--account",
        f"beta:{KEY}",
        "--account",
        f"alpha:{KEY}",
        "--log-format",
        "text",
        "--workers",
        "1",
    )
    with ServerProcess(*options, location=tmp_path) as server:
        assert sorted(server.accounts) == ["alpha", "beta"]
        assert server.endpoints["blob"].endswith(("/alpha", "/beta"))
        assert " serving form=" in server.errors
        assert "\x1b" not in server.errors
        assert KEY not in server.errors
