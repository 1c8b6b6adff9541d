"""What a long command shows while it works: a bar on a terminal, nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    def begin(self, what: str, total: int | None = None) -> Callable[[int], None]:
        """The next part of the work, of so many bytes if that is known. Calling the result adds bytes that are done."""

    def end(self) -> None:
        """All parts are done, whatever was expected of them."""


class NoProgress:
    def begin(self, what: str, total: int | None = None) -> Callable[[int], None]:
        return lambda count: None

    def end(self) -> None:
        return None


@contextmanager
def progress_on_terminal() -> Iterator[Progress]:
    """A bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield NoProgress()
        return
    # Imported here, since no other command needs it.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )

    class OnTerminal:
        def begin(self, what: str, total: int | None = None) -> Callable[[int], None]:
            task = bars.add_task(what, total=total)
            return lambda count: bars.advance(task, count)

        def end(self) -> None:
            for task in bars.tasks:
                bars.update(task.id, total=task.completed)

    # What a command prints goes above the bar, but not if it goes to a file.
    above = sys.stdout.isatty()
    with Bars(*columns, console=Console(stderr=True), redirect_stdout=above) as bars:
        yield OnTerminal()
