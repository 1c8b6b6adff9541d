"""Runs many conversations: ``python -m tests.services.smb.fuzzing --inputs 1000000``."""

import argparse
import asyncio
import resource
import tempfile
import time
from pathlib import Path

from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status
from tests.services.smb.fuzzing.run import run

_COMMANDS = set(Command)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000)
    parser.add_argument("--mutation-rate", type=float, default=0.5)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(
            run(Path(folder), seed=options.seed, inputs=options.inputs, mutation_rate=options.mutation_rate)
        )
    seconds = time.monotonic() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{report.inputs} inputs in {seconds:.0f} s, {report.conversations} conversations, {report.closed} closed"
    )
    print(f"at most {memory} MiB")
    for (command, status), count in report.statuses.most_common(100):
        name = Command(command).name if command in _COMMANDS else f"command {command}"
        print(f"{count:9} {name:16} {Status(status).name}")


if __name__ == "__main__":
    main()
