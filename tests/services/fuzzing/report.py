"""What a run has found out: how each operation was answered, what failed, and what took long."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field


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

    def uncovered(self, service: str, operations: dict[str, bool]) -> list[str]:
        """Operations, each with whether it exists, that were not answered well once and by two errors."""
        found = []
        for operation, exists in operations.items():
            answered = self.answers.get((service, operation), Counter())
            errors = [each for each in answered if not each.startswith(("2", "3"))]
            well = any(each.startswith("2") for each in answered) or (
                not exists and "NotImplemented" in answered
            )
            if not well or len(errors) < 2:
                found.append(f"{service}: {operation}: {dict(answered)}")
        return found

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
