"""One run: the servers are started once, and every row loads them alternately, round after round.

Interleaving is what makes the ratios worth something: a machine that is slower for a while is slower for all
of them. Odd rounds go through the servers in the opposite order.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from bench import profile
from bench.gauges import Gauge
from bench.load.client import Tally
from bench.load.clients import by_sockets, load
from bench.report.bars import bars_of
from bench.report.results import Measure, Result
from bench.rows.row import Dataset, Row
from bench.servers import processes
from bench.servers.installs import HOME
from bench.servers.peers import Server

WARM_UP_SECONDS = 0.5
WARM_UP_LANES = 4


@dataclass(slots=True)
class Run:
    """The servers that take part, and how long and how often each is measured."""

    servers: Sequence[Server]
    seconds: float
    rounds: int
    profiled: bool = False
    _filled: set[tuple[str, Dataset]] = field(default_factory=set)

    def row(self, row: Row) -> Result:
        """Measure one row. A server that fails ends the row, not the run."""
        result = Result(row.name, row.title, row.unit, bars_of(row.name), row.lanes)
        servers = [
            server
            for server in self.servers
            if row.service in server.sites and (server.is_store or server.name in row.beside)
        ]
        say(f"{row.name}: {', '.join(server.name for server in servers)}")
        try:
            for server in servers:
                if server.has_ended:
                    self._start_again(server, result)
                self._prepare(row, server)
            for number in range(self.rounds):
                for server in servers if number % 2 == 0 else reversed(servers):
                    self._round(row, server, number, result)
                for name, measure in row.yardsticks.items():
                    result.add(name, measure())
            for server in servers:
                if server.can_be_read:
                    row.check(server)
        except (OSError, RuntimeError) as problem:
            result.errors.append(str(problem))
        result.errors.extend(self._clean_up(row, servers))
        for error in result.errors[:3]:
            say(f"  FAILED: {error}")
        return result

    def _start_again(self, server: Server, result: Result) -> None:
        """It ended in an earlier row, which says so. This row has it with an empty store."""
        server.start_anew()
        self._filled = {filled for filled in self._filled if filled[0] != server.name}
        result.notes.append(f"{server.name} had ended, and was started again with an empty store.")

    def _prepare(self, row: Row, server: Server) -> None:
        if row.container is not None:
            server.create_container(row.container)
        if row.dataset is not None and (server.name, row.dataset) not in self._filled:
            say(f"  putting {row.dataset} into {server.name}")
            row.dataset.fill(server)
            self._filled.add((server.name, row.dataset))
        warmed = by_sockets(
            server.sites[row.service],
            row.work(server, "warm"),
            lanes=min(row.lanes, WARM_UP_LANES),
            seconds=min(WARM_UP_SECONDS, self.seconds / 4),
        )
        if warmed.errors:
            raise RuntimeError(f"{server.name}: {warmed.errors[0]}")

    def _round(self, row: Row, server: Server, number: int, result: Result) -> None:
        path = HOME / "profile" / f"{row.name.replace('/', '-')}.folded"
        is_profiled = self.profiled and server.name == "kyanite" and number == 0
        with profile.sampling(server.pids[0], path) if is_profiled else nullcontext():
            tally, spent = self._load(row, server, number)
        measure = Measure.of(tally, spent, lanes=row.lanes, units_per_operation=row.units_per_operation)
        result.client = tally.client
        result.add(server.name, measure.value)
        result.measures.setdefault(server.name, []).append(measure)
        result.errors.extend(f"{server.name}: {problem}" for problem in tally.errors)
        say(f"  {server.name:8} {measure.value:12,.1f}{row.unit}  errors {len(tally.errors)}")
        if is_profiled:
            result.notes.append(f"{path}:\n" + "\n".join(profile.hottest(path)))

    def _load(self, row: Row, server: Server, number: int) -> tuple[Tally, processes.Spent]:
        os.sync()  # What another server left unwritten must not be written in the time of this one.
        pids = server.pids
        before = processes.spent(pids)
        tally = load(
            server.sites[row.service],
            row.work(server, str(number)),
            lanes=row.lanes,
            seconds=self.seconds,
            requests_per_operation=row.requests_per_operation,
        )
        return tally, processes.spent(pids).since(before)

    def _clean_up(self, row: Row, servers: Sequence[Server]) -> list[str]:
        """Delete what the row has put; what went wrong with that."""
        problems: list[str] = []
        for server in servers if row.container is not None else ():
            try:
                server.delete_container(row.container or "")
            except (OSError, RuntimeError) as problem:
                problems.append(f"{server.name}: {problem}")
        return problems


def read_gauge(gauge: Gauge, peers: Sequence[str], rounds: int, folder: Path) -> Result:
    """Read a gauge for each of the peers, alternately."""
    result = Result(gauge.name, gauge.title, gauge.unit, bars_of(gauge.name))
    say(f"{gauge.name}: {', '.join(peers)}")
    for number in range(1 if gauge.once else rounds):
        for peer in peers:
            try:
                reading = gauge.read(peer, folder / f"{gauge.name}-{peer}-{number}")
            except (OSError, RuntimeError) as problem:
                result.errors.append(f"{peer}: {problem}")
                return result
            result.add(peer, reading.value)
            if reading.note and number == 0:
                result.notes.append(reading.note)
            say(f"  {peer:8} {reading.value:12,.2f}{gauge.unit}")
    return result


def say(text: str) -> None:
    """Progress goes to standard error, so that standard output has the tables only."""
    print(text, file=sys.stderr, flush=True)
