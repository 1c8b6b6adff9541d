"""What a run has found out: how each operation was answered, what failed, and what took long."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from kyanite.services.rest.operations import Op, not_yet

NEVER_DONE = frozenset(("Abort Copy Blob", "Abort Copy File"))
"""A copy is complete when its request is answered, so there is none to abort."""


@dataclass
class Failure:
    seed: int
    world: int
    number: int
    """Of the request in its world."""
    problem: str
    sent: bytes
    log: str = ""

    def recipe(self) -> str:
        """How to see it again."""
        head = (
            self.sent[:3000].decode("latin-1").encode("unicode_escape").decode().replace("\\r\\n", "\n    ")
        )
        return (
            f"seed {self.seed}, world {self.world}, request {self.number}: {self.problem}\n"
            f"    python -m tests.services.fuzzing --seed {self.seed} --world {self.world}\n"
            f"    {head}\n{self.log}"
        )


@dataclass
class Report:
    requests: int = 0
    unanswered: int = 0
    """Requests with broken framing, which the server may leave without an answer."""
    by_service: Counter[str] = field(default_factory=Counter)
    successes: Counter[str] = field(default_factory=Counter)
    """Answers of 2xx, by service."""
    answers: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By service and operation: how often each status or error code was answered."""
    failures: list[Failure] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)

    def count(self, service: str, operation: str, status: int, code: str) -> None:
        self.requests += 1
        self.by_service[service] += 1
        self.successes[service] += 200 <= status < 300
        self.answers[service, operation or "(none)"][code or str(status)] += 1

    def uncovered(self, service: str, operations: Iterable[Op]) -> list[str]:
        """The names of operations that were not yet answered well and by two different errors.

        Of an operation that this server lacks, that error suffices.
        """
        exist = {op.name: op.handle is not not_yet for op in operations}
        return [name for name, exists in exist.items() if not self._is_covered(service, name, exists=exists)]

    def _is_covered(self, service: str, name: str, *, exists: bool) -> bool:
        answered = self.answers.get((service, name), Counter())
        errors = [each for each in answered if not each.startswith(("2", "3"))]
        if not exists:
            return "NotImplemented" in answered
        is_answered_well = name in NEVER_DONE or any(each.startswith("2") for each in answered)
        return is_answered_well and len(errors) > 1

    def merge(self, other: "Report") -> None:
        self.requests += other.requests
        self.unanswered += other.unanswered
        self.by_service.update(other.by_service)
        self.successes.update(other.successes)
        for key, counts in other.answers.items():
            self.answers[key].update(counts)
        self.failures += other.failures
        self.slow += other.slow

    def lines(self) -> list[str]:
        found = []
        for service, count in sorted(self.by_service.items()):
            share = 100 * self.successes[service] / count
            found.append(f"{service}: {count} requests, {share:.0f} % answered 2xx")
        for (service, operation), counts in sorted(self.answers.items()):
            most = ", ".join(f"{name} {count}" for name, count in counts.most_common(8))
            found.append(f"  {service:6}{operation:34}{sum(counts.values()):8}  {most}")
        found.append(f"{self.unanswered} with broken framing had no answer")
        found += [f"slow: {each}" for each in self.slow]
        return found
