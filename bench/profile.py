"""Where Kyanite's processes spend their time during a measurement, sampled by py-spy from outside.

The stacks are written in the folded form that flame graph tools and speedscope read; the functions that were
on top most often are in the report. Sampling costs speed, so figures of a profiled run are not to be
compared.
"""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.servers import installs

SAMPLES_PER_SECOND = 200
TOP = 25


@contextmanager
def sampling(pid: int, path: Path) -> Iterator[None]:
    """Sample the process and its children while the body runs, and leave the folded stacks in the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [str(installs.py_spy()), "record", "--pid", str(pid), "--subprocesses", "--nonblocking"]
    options = ["--rate", str(SAMPLES_PER_SECOND), "--format", "raw", "--output", str(path)]
    spy = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        yield
    finally:
        os.kill(spy.pid, signal.SIGINT)
        _, complaint = spy.communicate(timeout=60)
    if not path.exists():
        raise SystemExit(f"py-spy left no profile: {complaint.decode(errors='replace')[-500:]}")


def hottest(path: Path) -> Sequence[str]:
    """The functions that used the most time themselves, with their share of all samples."""
    own: Counter[str] = Counter()
    for line in path.read_text().splitlines():
        frames, _, samples = line.rpartition(" ")
        function, _, _ = frames.rpartition(";")[2].rpartition(":")
        own[f"{function})"] += int(samples)
    total = sum(own.values()) or 1
    return [f"{100 * samples / total:5.1f} %  {frame}" for frame, samples in own.most_common(TOP)]
