"""``python -m kyanite.testing.served OPTIONS``: ``kyanite serve`` that ends with the process that started it.

That process has the other end of the pipe that is standard input. Where the system can, it signals the end of the pipe.
"""

import fcntl
import os
import select
import signal
import sys

from kyanite.server.cli import main


def end_with_standard_input() -> None:
    """Stop this process as soon as nobody can write to its standard input any more."""
    if not hasattr(fcntl, "F_SETSIG"):
        return
    descriptor = sys.stdin.fileno()
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([descriptor], [], [], 0)[0]:  # It ended before the signal was asked for.
        sys.exit(0)


if __name__ == "__main__":
    end_with_standard_input()
    sys.argv[1:1] = ["serve"]
    main()
