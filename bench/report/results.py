"""What a run has found, ready to be printed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.load.client import Tally, processes_for
from bench.report.bars import Bar
from bench.servers.processes import Spent


@dataclass(frozen=True, slots=True)
class Measure:
    """One round of one server. ``headroom`` is how many times faster the client alone could have been."""

    value: float
    p50_ms: float
    p99_ms: float
    server_user_us: float
    server_system_us: float
    client_us: float
    headroom: float

    @classmethod
    def of(cls, tally: Tally, spent: Spent, *, lanes: int, units_per_operation: float) -> "Measure":
        done = tally.operations or 1.0
        client_us = 1e6 * tally.client_cpu_seconds / done
        alone = processes_for(lanes) * 1e6 / client_us if client_us else 0.0
        return cls(
            value=tally.rate * units_per_operation,
            p50_ms=tally.percentile_ms(0.50),
            p99_ms=tally.percentile_ms(0.99),
            server_user_us=1e6 * spent.user_seconds / done,
            server_system_us=1e6 * spent.system_seconds / done,
            client_us=client_us,
            headroom=alone / tally.rate if tally.rate else 0.0,
        )


@dataclass(slots=True)
class Result:
    """All rounds of one row.

    ``values`` has a list for every server that took part; ``measures`` only under load.
    """

    name: str
    title: str
    unit: str
    bars: Sequence[Bar]
    lanes: int | None = None
    client: str = ""
    """Which client made the load."""
    values: dict[str, list[float]] = field(default_factory=dict)
    measures: dict[str, list[Measure]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, peer: str, value: float) -> None:
        self.values.setdefault(peer, []).append(value)

    @property
    def medians(self) -> Mapping[str, float]:
        return {peer: median(values) for peer, values in self.values.items()}

    @property
    def verdict(self) -> str:
        """FAILED when anything went wrong, else whether every bar that can be judged was reached."""
        if self.errors:
            return "FAILED"
        judged = [reached for bar in self.bars if (reached := bar.reached(self.medians)) is not None]
        if not judged:
            return ""
        return "pass" if all(judged) else "miss"
