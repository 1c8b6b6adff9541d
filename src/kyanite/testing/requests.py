"""The requests that a server has received, to assert on."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from kyanite.testing.admin import AdminPort, KitError


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """Without keys, tokens and signatures."""

    number: int
    """In the order of arrival."""
    time: str
    """By the clock of the server."""
    service: str
    operation: str
    """Its name in the REST reference; empty if there is no such operation."""
    account: str
    method: str
    path: str
    """Decoded and without the account."""
    query: str
    headers: dict[str, str]
    """Names in lower case. Long values are cut."""
    client_request_id: str
    request_id: str
    status: int | None
    """None while it is being served, or if it got no answer."""
    code: str
    """The error code of the answer."""
    fault: int | None
    """The fault that happened to it."""
    done: bool
    """Whether it has been answered, or never will be."""


class Requests:
    """The requests of a server, or those of one account of it, since the last ``clear``."""

    def __init__(self, admin: AdminPort, account: str | None = None, after: int = 0) -> None:
        """``after`` is the number of the last request that does not count."""
        self._admin = admin
        self._account = account
        self._after = after

    def __iter__(self) -> Iterator[RecordedRequest]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())

    def all(
        self,
        *,
        operation: str | None = None,
        service: str | None = None,
        account: str | None = None,
        path: str | None = None,
        method: str | None = None,
        status: int | None = None,
        code: str | None = None,
        client_request_id: str | None = None,
        request_id: str | None = None,
    ) -> list[RecordedRequest]:
        """Those that match, in the order of arrival. ``path`` is a pattern."""
        filters: dict[str, object] = {
            "operation": operation,
            "service": service,
            "account": account or self._account,
            "path": path,
            "method": method,
            "status": status,
            "code": code,
            "client_request_id": client_request_id,
            "request_id": request_id,
        }
        answer = self._admin.request("GET", "requests", query={**filters, "after": self._after})
        if answer["forgotten"]:
            raise KitError(
                409,
                f"The server keeps the last requests only: {answer['forgotten']} older ones are gone. Clear earlier.",
            )
        return [_recorded(each) for each in answer["requests"]]

    def count(self, **filters: Any) -> int:
        """How many match; the filters are those of ``all``."""
        return len(self.all(**filters))

    def last(self, **filters: Any) -> RecordedRequest:
        """The last one that matches. There is to be one."""
        found = self.all(**filters)
        assert found, f"no request with {filters or 'any filter'}; there are {self._summary()}"
        return found[-1]

    def assert_count(self, expected: int, **filters: Any) -> None:
        """Fail, and say which requests there are, unless so many match."""
        found = self.count(**filters)
        assert found == expected, (
            f"{found} requests with {filters}, not {expected}; there are {self._summary()}"
        )

    def clear(self) -> None:
        """Begin anew: what was received before is not returned any more. Other readers of the server keep theirs."""
        self._after = int(self._admin.request("GET", "requests", query={"after": _NONE_AFTER})["last"])

    def _summary(self) -> str:
        return (
            ", ".join(f"{each.operation or each.method} {each.path} {each.status}" for each in self.all())
            or "none"
        )


_NONE_AFTER = 10**17
_NAMES = {field.name for field in fields(RecordedRequest)}


def _recorded(state: dict[str, Any]) -> RecordedRequest:
    """A server may say more than this version knows."""
    return RecordedRequest(**{name: value for name, value in state.items() if name in _NAMES})
