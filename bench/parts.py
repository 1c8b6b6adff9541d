"""``python -m bench.parts ROW...``: which part of a server uses the processor under the load of a row.

``perf`` (Linux) samples the processes of one server from outside. The parts are the files that the code is in: the
kernel, the interpreter, compiled modules of Kyanite, SQLite, the event loop and other libraries. A client on the same
machine takes its time beside the server, so the shares do not depend on it, and hardly on what else the machine does.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from bench.load.clients import load
from bench.rows import ROWS
from bench.rows.row import Row
from bench.run import WARM_UP_LANES
from bench.servers.peers import Kyanite, Server

PARTS = (
    ("kernel", ("[[]*", "*.ko")),
    ("interpreter", ("python3*", "libpython*")),
    ("compiled Kyanite", ("*__mypyc*", "kyanite*")),
    ("SQLite", ("__init__.cpython*", "apsw*")),
    ("event loop", ("loop.cpython*",)),
    ("HTTP parser", ("parser.cpython*", "url_parser*")),
    ("records", ("_core.cpython*",)),
    ("hashes", ("libcrypto*", "_xxhash*", "crc.*", "_hashlib*", "_md5*")),
    ("C library", ("libc.*", "libm.*", "libpthread*", "ld-linux*")),
)
"""By patterns of names of files. The first that fits counts."""
OTHERS = "other libraries"


def part_of(file: str) -> str:
    names = (part for part, patterns in PARTS if any(fnmatchcase(file, pattern) for pattern in patterns))
    return next(names, OTHERS)


def shares(report: str) -> dict[str, float]:
    """The share of each part in percent, of lines of a share, a semicolon and a file."""
    found: dict[str, float] = {}
    for line in report.splitlines():
        share, separator, file = line.partition(";")
        if separator and not line.startswith("#"):
            part = part_of(Path(file.strip()).name)
            found[part] = found.get(part, 0.0) + float(share.strip().removesuffix("%"))
    return found


@contextmanager
def _sampled(server: Server, samples: Path) -> Iterator[None]:
    pids = ",".join(map(str, server.pids))
    command = ["perf", "record", "--event", "cpu-clock", "--freq", "999", "--output", str(samples)]
    perf = subprocess.Popen([*command, "--pid", pids], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        perf.send_signal(2)
        perf.wait()


def measure(server: Server, row: Row, seconds: float, samples: Path) -> Mapping[str, float]:
    if row.container is not None:
        server.create_container(row.container)
    if row.dataset is not None:
        row.dataset.fill(server)
    site = server.sites[row.service]
    load(site, row.work(server, "warm"), lanes=min(row.lanes, WARM_UP_LANES), seconds=0.5)
    with _sampled(server, samples):
        tally = load(
            site,
            row.work(server, "measured"),
            lanes=row.lanes,
            seconds=seconds,
            requests_per_operation=row.requests_per_operation,
        )
    if tally.errors:
        raise SystemExit(f"{row.name}: {tally.errors[0]}")
    command = ["perf", "report", "--input", str(samples), "--stdio", "--sort", "dso"]
    ended = subprocess.run(
        [*command, "--field-separator", ";"], capture_output=True, text=True, check=True, errors="replace"
    )
    return shares(ended.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.parts", description=__doc__)
    parser.add_argument("rows", nargs="+", help="names or patterns of rows, such as get-1k/32")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--folder", type=Path, help="where the store goes (default: temporary files)")
    options = parser.parse_args()
    names = [part for part, _ in PARTS] + [OTHERS]
    print(f"{'percent':24}" + "".join(f"{name:>18}" for name in names))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name).resolve()
        server = Kyanite(folder / "store")
        server.start()
        try:
            for row in ROWS:
                if any(fnmatchcase(row.name, pattern) for pattern in options.rows):
                    found = measure(server, row, options.seconds, folder / "samples")
                    print(f"{row.name:24}" + "".join(f"{found.get(each, 0.0):18.1f}" for each in names))
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
