"""One line for each check, and the totals at the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_DETAIL_CHARACTERS = 3000


@dataclass
class Tally:
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class Report:
    """Counts for all clients; ``of`` is the same report for the checks of one."""

    def __init__(self, client: str = "", tally: Tally | None = None) -> None:
        self._client = client
        self._tally = tally or Tally()

    def of(self, client: str) -> "Report":
        return Report(client, self._tally)

    @property
    def failures(self) -> list[str]:
        return self._tally.failures

    @contextmanager
    def check(self, name: str) -> Iterator[None]:
        """The block is the check. It fails by raising; the next check runs in any case."""
        try:
            yield
        except Exception as problem:
            self.failed(name, str(problem) or repr(problem))
        else:
            self.passed(name)

    def passed(self, name: str) -> None:
        self._tally.passed += 1
        self._print("ok", name)

    def failed(self, name: str, reason: str) -> None:
        self._tally.failures.append(f"{self._client}: {name}")
        self._print("FAILED", name)
        for line in reason[-_DETAIL_CHARACTERS:].splitlines():
            print(f"        {line}", flush=True)

    def not_there(self, service: str) -> None:
        """The server does not offer the service."""
        self._tally.missing.append(service)
        self._print("not there", f"the {service} service")

    def summary(self) -> str:
        lines = [f"FAILED {failure}" for failure in self._tally.failures]
        if self._tally.missing:
            lines.append(f"not there: {', '.join(sorted(set(self._tally.missing)))}")
        lines.append(f"{self._tally.passed} passed, {len(self._tally.failures)} failed")
        return "\n".join(lines)

    def _print(self, outcome: str, name: str) -> None:
        print(f"{outcome:9}  {self._client:10}  {name}", flush=True)
