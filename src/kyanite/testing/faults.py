"""Faults that tests ask for: requests that fail, wait, or lose their answer."""

from dataclasses import dataclass, field
from typing import Any

from kyanite.testing.admin import AdminPort, KitError


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a server, until it is removed."""

    id: int
    _admin: AdminPort = field(compare=False, repr=False)

    @property
    def matched(self) -> int:
        """How many requests it has matched."""
        return int(self._state()["matched"])

    @property
    def fired(self) -> int:
        """To how many requests it has happened."""
        return int(self._state()["fired"])

    def remove(self) -> None:
        self._admin.request("DELETE", "faults", name=str(self.id))

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._admin.request("GET", "faults", name=str(self.id))
        return state


class Faults:
    """The faults of a server, or those for one account of it."""

    def __init__(self, admin: AdminPort, account: str | None = None) -> None:
        self._admin = admin
        self._account = account

    def add(
        self,
        *,
        operation: str | None = None,
        service: str | None = None,
        account: str | None = None,
        path: str | None = None,
        method: str | None = None,
        status: int | None = None,
        code: str | None = None,
        retry_after_seconds: int | None = None,
        drop: bool = False,
        truncate_bytes: int | None = None,
        delay_seconds: float = 0.0,
        after_commit: bool = False,
        times: int | None = None,
        skip: int = 0,
        probability: float = 1.0,
        seed: int = 0,
        beyond_per_second: int | None = None,
    ) -> Fault:
        """A fault, which holds on every worker when this returns.

        Which requests: those of the ``operation`` (its name in the REST reference), ``service``, ``account``, ``path``
        (a pattern of the decoded path without the account, ``photos/*.jpg``) and ``method``.

        What happens: an error with ``status``, ``code`` and ``Retry-After``; or the connection is reset (``drop``), or
        reset after ``truncate_bytes`` of the answer's body. ``after_commit`` carries the request out first.
        ``delay_seconds`` pass before any of that, or alone.

        How often: after ``skip`` requests, at most ``times``, with a ``probability`` (the ``seed`` decides which ones),
        and only ``beyond_per_second`` requests within a second of the server's clock.
        """
        given = {
            "operation": operation,
            "service": service,
            "account": account or self._account,
            "path": path,
            "method": method,
            "status": status,
            "code": code,
            "retry_after_seconds": retry_after_seconds,
            "drop": drop,
            "truncate_bytes": truncate_bytes,
            "delay_seconds": delay_seconds,
            "after_commit": after_commit,
            "times": times,
            "skip": skip,
            "probability": probability,
            "seed": seed,
            "beyond_per_second": beyond_per_second,
        }
        state = self._admin.request("POST", "faults", given)
        return Fault(state["id"], self._admin)

    def all(self) -> list[Fault]:
        states = self._admin.request("GET", "faults")["faults"]
        return [
            Fault(state["id"], self._admin)
            for state in states
            if self._account in (None, state.get("account"))
        ]

    def remove(self, fault: Fault | int) -> None:
        """Remove one. One that is not there any more is no error."""
        try:
            self._admin.request("DELETE", "faults", name=str(fault if isinstance(fault, int) else fault.id))
        except KitError as error:
            if error.status != 404:
                raise

    def clear(self) -> None:
        """Remove all of them."""
        self._admin.request("DELETE", "faults", query={"account": self._account})
