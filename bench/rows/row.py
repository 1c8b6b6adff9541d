"""A row of the benchmark: who takes part, how to prepare, what the lanes do, the bar."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from bench.load.client import LaneWork
from bench.load.plan import Plan
from bench.load.site import Site
from bench.servers.peers import Server


class Sizes(NamedTuple):
    """How much rows find in a server that is not what they measure."""

    listed_blobs: int
    listed_files: int
    backlog_messages: int


FULL = Sizes(20_000, 20_000, 5_000)
QUICK = Sizes(5_000, 5_000, 1_000)


class Dataset(Protocol):
    """What rows find in a server. Put once for each server, by the first row that wants it.

    Two that are equal are the same; ``str`` says what it is.
    """

    def fill(self, server: Server) -> None: ...


class NamedDataset(Dataset, Protocol):
    """A table, a queue or a share."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement.

    ``work`` is given the server, and a text that no other measurement of the run is given.
    """

    name: str
    title: str
    lanes: int
    work: Callable[[Server, str], LaneWork | Plan]
    check: Callable[[Server], None]
    """Fails when the server does not really do what the row measures. Run once, after all rounds."""
    service: str = "blob"
    dataset: Dataset | None = None
    container: str | None = None
    """A container of the row's own, made before and deleted after it."""
    unit: str = "/s"
    units_per_operation: float = 1.0
    requests_per_operation: int = 1
    beside: tuple[str, ...] = ()
    """Servers that store nothing and take part in this row."""
    yardsticks: Mapping[str, Callable[[], float]] = field(default_factory=dict)
    """What is measured in every round beside the servers, in the unit of the row."""


def row_of(
    service: str,
    label: str,
    title: str,
    dataset: NamedDataset,
    work: Callable[[Site, str, str], LaneWork | Plan],
    check: Callable[[Server], None],
    **options: Any,
) -> Row:
    """A row of a service beside Blob Storage. The label ends in a slash and the number of lanes; the work is given the
    service's listener, the name of the dataset, and the text of the measurement."""
    return Row(
        name=f"{service}-{label}",
        title=title,
        lanes=int(label.rpartition("/")[2]),
        service=service,
        work=lambda server, series: work(server.sites[service], dataset.name, series),
        check=check,
        dataset=dataset,
        **options,
    )
