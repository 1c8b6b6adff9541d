"""SMB rows: what is subtracted, who is measured when, and what becomes of a server that fails."""

from collections.abc import Sequence

from bench.rows.smb import SMB_ROWS, SmbRow

from bench import smb


class FakePeer:
    """Takes a second for nothing, and ``seconds`` more for what it is told to do."""

    def __init__(self, name: str, seconds: float, log: list[str] | None = None) -> None:
        self.name = name
        self._seconds = seconds
        self._log = log if log is not None else []

    def idle_seconds(self, clients: int, protection: str) -> float:
        return 1.0

    def seconds(self, commands: Sequence[Sequence[str]], options: Sequence[str] = ()) -> float:
        self._log.append(f"{self.name}: {commands[0][-1]}")
        return 1.0 + self._seconds


def row(name: str) -> SmbRow:
    return next(each for each in SMB_ROWS if each.name == name)


def test_the_time_of_sessions_that_do_nothing_is_subtracted() -> None:
    result = smb.measured(row("smb-read-256m/1"), [FakePeer("kyanite", 2.0), FakePeer("smbd", 2.5)], 1)  # type: ignore[list-item]
    assert result.values == {"kyanite": [128.0], "smbd": [102.4]}
    assert result.verdict == "pass"
    line = smb.table([result])[1]
    assert line[:5] == ["read 256 MiB", "1", "128 MiB/s", "102 MiB/s", "1.25×"]


def test_servers_are_visited_alternately_and_each_round_has_its_directory() -> None:
    log: list[str] = []
    smb.measured(row("smb-write-256m/1"), [FakePeer("kyanite", 1.0, log), FakePeer("smbd", 1.0, log)], 2)  # type: ignore[list-item]
    assert log == [
        f"{name}: {command}"
        for name, number in (("kyanite", 0), ("smbd", 0), ("smbd", 1), ("kyanite", 1))
        for command in (
            f"mkdir smb-write-256m-1-{number}",
            "put large file0",
            f"deltree smb-write-256m-1-{number}",
        )
    ]


def test_a_directory_that_is_listed_is_filled_once() -> None:
    log: list[str] = []
    smb.measured(row("smb-list-10000/1"), [FakePeer("kyanite", 1.0, log)], 3)  # type: ignore[list-item]
    assert [command.split()[1] for command in log] == ["mkdir", "mkdir", "mput", "ls", "ls", "ls"]


def test_a_server_that_fails_ends_the_row() -> None:
    class Failing(FakePeer):
        def seconds(self, commands: Sequence[Sequence[str]], options: Sequence[str] = ()) -> float:
            raise RuntimeError("no")

    result = smb.measured(row("smb-write-256m/1"), [Failing("kyanite", 1.0)], 1)  # type: ignore[list-item]
    assert result.errors == ["no"]
    assert result.verdict == "FAILED"


def test_a_round_as_short_as_nothing_is_no_measurement() -> None:
    result = smb.measured(row("smb-write-256m/1"), [FakePeer("kyanite", 0.0)], 1)  # type: ignore[list-item]
    assert result.verdict == "FAILED"


def test_rows_have_names_of_their_own() -> None:
    assert len({each.name for each in SMB_ROWS}) == len(SMB_ROWS)
