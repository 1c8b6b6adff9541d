"""The server with a wall clock that a test can move, or with less patience for slow readers.

Run as a program it takes the options of ``kyanite``. ``ALTERED_CLOCK`` names a file with the seconds by which the wall
clock is wrong; ``ALTERED_SLOW_SECONDS`` is when a download counts as slow.
"""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from kyanite.engine import clock
from kyanite.server.cli import main
from kyanite.services.rest import streams

PROGRAM = (sys.executable, "-P", __file__, "serve")


def _alter_clock(file: Path) -> None:
    altered = SimpleNamespace(**vars(time))
    altered.time_ns = lambda: time.time_ns() + int(file.read_text()) * 1_000_000_000
    setattr(clock, "time", altered)  # noqa: B010


if __name__ == "__main__":
    if "ALTERED_CLOCK" in os.environ:
        _alter_clock(Path(os.environ["ALTERED_CLOCK"]))
    if "ALTERED_SLOW_SECONDS" in os.environ:
        streams.SLOW_SECONDS = float(os.environ["ALTERED_SLOW_SECONDS"])
    main()
