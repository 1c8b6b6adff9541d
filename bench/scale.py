"""``python -m bench.scale``: the embedded store beside PostgreSQL, with one node, two nodes and two stamps.

Everything runs on this machine: nodes, databases and clients share its processors. So the table does not show what more
machines would do; it shows what each way costs, and where. For an operation, the columns have the processor time of the
nodes, of the databases, and what is left of all processors: the clients', other programs' and none's; and the
transactions of the databases, of which each is a round trip, but for those of a batch that takes the lock first. Two
nodes share one store. Two stamps are two stores, each with a node and a database of its own. The clients are divided
among the nodes; a single one has the first.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import monotonic
from typing import NamedTuple

from tests.postgres_server import PostgresServer, running_postgres
from tests.seaweed_server import shared_server

from bench.load.clients import load
from bench.rows import ROWS
from bench.rows.row import Dataset, Row
from bench.run import say
from bench.servers import installs, processes
from bench.servers.peers import Kyanite

DEFAULT_ROWS = (
    "put-1k/32,get-1k/32,if-match/32,lease-cycle/32,upload-256m/1,upload-256m/4,download-256m/1,download-256m/4,"
    "queue-cycle/32,queue-cycle-backlog/32,table-point/32,table-partition/32,table-insert/32,table-batch/32,"
    "list-page/1,list-prefix/1,list-delimiter/1"
)
"""Of design §12, what one server does as well."""


class Node(Kyanite):
    def __init__(self, folder: Path, workers: int, *options: str) -> None:
        super().__init__(folder)
        self.name = folder.name
        self.options = ("--workers", str(workers), *options)


@dataclass(frozen=True, slots=True)
class Setting:
    """Nodes that are loaded together, and the databases behind them."""

    name: str
    nodes: Sequence[Node]
    databases: Sequence[PostgresServer]
    stores: int = 1
    filled: set[Dataset] = field(default_factory=set)

    def prepare(self, row: Row) -> None:
        for node in self.nodes[: self.stores]:
            if row.container is not None:
                node.create_container(row.container)
            if row.dataset is not None and row.dataset not in self.filled:
                row.dataset.fill(node)
        if row.dataset is not None:
            self.filled.add(row.dataset)

    def spent(self) -> tuple[processes.Spent, processes.Spent]:
        node_pids = [pid for node in self.nodes for pid in node.pids]
        database_pids = [pid for each in self.databases for pid in processes.family(each.pid)]
        return processes.spent(node_pids), processes.spent(database_pids)

    def transactions(self) -> int:
        return sum(int(each.sql(_TRANSACTIONS)) for each in self.databases)


_TRANSACTIONS = "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"


class Figures(NamedTuple):
    rate: float
    p99_ms: float
    node_us: float
    database_us: float
    rest_us: float
    transactions: float


def main() -> None:
    options = _options()
    if options.installed:
        Kyanite.program = (installs.kyanite("postgres", "s3"),)
    names = options.rows.split(",")
    rows = [row for row in ROWS if row.name in names]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, _settings(Path(folder)) as settings:
        if options.markdown:
            print(_MARKDOWN_HEAD, flush=True)
        for row in rows:
            found = _medians(_measured(row, settings, options))
            print(_markdown(row, found) if options.markdown else _text(row, found), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--rows", default=DEFAULT_ROWS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, help="where the stores go (default: temporary files)")
    parser.add_argument("--markdown", action="store_true", help="print one table of Markdown")
    parser.add_argument("--installed", action="store_true", help="measure what pip install . makes")
    return parser.parse_args()


@contextmanager
def _settings(folder: Path) -> Iterator[Sequence[Setting]]:
    with ExitStack() as running:

        def node(name: str, workers: int, engine: str = "embedded", extents: str = "local") -> Node:
            started = Node(folder / name, workers, "--engine", engine, "--extents", extents)
            running.callback(started.stop)
            started.start()
            return started

        first, second = (running.enter_context(running_postgres()) for _ in range(2))
        shared = first.new_schema_url()
        bucket = running.enter_context(shared_server(folder)).url("two-nodes")
        yield [
            Setting("embedded", [node("embedded", 2)], []),
            Setting("one node", [node("one", 2, first.new_schema_url())], [first]),
            Setting(
                "two nodes", [node("left", 1, shared, bucket), node("right", 1, shared, bucket)], [first]
            ),
            Setting(
                "two stamps",
                [node("stamp-1", 1, first.new_schema_url()), node("stamp-2", 1, second.new_schema_url())],
                [first, second],
                stores=2,
            ),
        ]


def _measured(row: Row, settings: Sequence[Setting], options: argparse.Namespace) -> dict[str, list[Figures]]:
    say(row.name)
    for setting in settings:
        setting.prepare(row)
    found: dict[str, list[Figures]] = {setting.name: [] for setting in settings}
    for number in range(options.rounds):
        for setting in settings if number % 2 == 0 else reversed(settings):
            found[setting.name].append(_round(row, setting, f"round-{number}", options.seconds))
    return found


def _round(row: Row, setting: Setting, name: str, seconds: float) -> Figures:
    nodes = setting.nodes[: row.lanes]
    lanes = row.lanes // len(nodes)
    transactions, began, before = setting.transactions(), monotonic(), setting.spent()
    with ThreadPoolExecutor(len(nodes)) as threads:
        loads = [
            threads.submit(
                load,
                node.sites[row.service],
                row.work(node, f"{name}-{index}"),
                lanes=lanes,
                seconds=seconds,
                requests_per_operation=row.requests_per_operation,
            )
            for index, node in enumerate(nodes)
        ]
        tallies = [each.result() for each in loads]
    for tally in tallies:
        if tally.errors:
            raise RuntimeError(f"{setting.name}: {tally.errors[0]}")
    in_nodes, in_databases = (
        _seconds(now.since(then)) for now, then in zip(setting.spent(), before, strict=True)
    )
    rest = (os.cpu_count() or 1) * (monotonic() - began) - in_nodes - in_databases
    operations = sum(tally.operations for tally in tallies)
    return Figures(
        sum(tally.rate for tally in tallies) * row.units_per_operation,
        max(tally.percentile_ms(0.99) for tally in tallies),
        in_nodes * 1e6 / operations,
        in_databases * 1e6 / operations,
        rest * 1e6 / operations,
        (setting.transactions() - transactions) / operations,
    )


def _seconds(spent: processes.Spent) -> float:
    return spent.user_seconds + spent.system_seconds


def _medians(found: dict[str, list[Figures]]) -> dict[str, Figures]:
    return {
        name: Figures(*(median(column) for column in zip(*figures, strict=True)))
        for name, figures in found.items()
    }


def _text(row: Row, found: dict[str, Figures]) -> str:
    heads = f"{row.unit:>9}{'p99 ms':>9}{'node us':>10}{'database us':>13}{'rest us':>10}{'transactions':>14}"
    lines = [f"\n{row.title:34}{heads}"]
    for name, (rate, p99, node, database, rest, transactions) in found.items():
        lines.append(
            f"  {name:32}{rate:9,.0f}{p99:9.1f}{node:10.0f}{database:13.0f}{rest:10.0f}{transactions:14.2f}"
        )
    return "\n".join(lines)


_MARKDOWN_HEAD = """\
| | | | p99 ms | nodes µs | databases µs | transactions |
| --- | --- | ---: | ---: | ---: | ---: | ---: |"""


def _markdown(row: Row, found: dict[str, Figures]) -> str:
    """The row has one line for each setting, and its title and clients in the first."""
    lines, title = [], f"{row.title}, {row.lanes}"
    for name, figures in found.items():
        cells = [title, name, f"{figures.rate:,.0f} {row.unit.strip()}", f"{figures.p99_ms:,.0f}"]
        cells += [f"{figures.node_us:,.0f}"]
        cells += (
            [f"{figures.database_us:,.0f}", f"{figures.transactions:.2f}"]
            if figures.transactions
            else ["", ""]
        )
        lines.append(f"| {' | '.join(cells)} |")
        title = ""
    return "\n".join(lines)


if __name__ == "__main__":
    main()
