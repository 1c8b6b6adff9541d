"""The requests of a world, one after the other: valid ones of every operation, and what mutations make of them."""

from collections.abc import Collection, Mapping, Sequence
from types import ModuleType

from kyanite.services.rest.operations import Op
from kyanite.values import Instant
from kyanite.wire import numbers
from tests.services.fuzzing.mutations import mutate, other_credentials
from tests.services.fuzzing.oddities import Chance
from tests.services.fuzzing.pool import Pool
from tests.services.fuzzing.request import FuzzRequest
from tests.services.fuzzing.scope import Scope
from tests.services.fuzzing.seeds import first_requests
from tests.services.fuzzing.shapes import blob, file, queue, table
from tests.services.fuzzing.shapes.shape import Shape, build, shape_of
from tests.services.fuzzing.signing import Signer
from tests.services.fuzzing.tours.corpus import recorded, request_of
from tests.services.harness import ACCOUNT, OTHER

SERVICES: Mapping[str, ModuleType] = {
    "blob": blob,
    "queue": queue,
    "table": table,
    "file": file,
}
_WEIGHTS = {"blob": 4, "queue": 2, "table": 3, "file": 4}
_MUTATION_RATE = 0.55
_RECORDED_RATE = 0.15
_FAVOURED = 12
_LENGTHS = frozenset(("x-ms-blob-content-length", "x-ms-content-length"))
_COPIED_MAX = 1 << 26
_COPYABLE_MAX = 5000 << 20
_BEYOND_COPYABLE = str(4 << 40)


class Rows:
    """The operations of a service with their shapes, chosen by weight."""

    def __init__(self, service: str, only: Collection[str] = ()) -> None:
        """All of them, or those of certain names only."""
        module = SERVICES[service]
        self.rows: list[tuple[Op, Shape]] = [
            (op, shape_of(module.SHAPES, op)) for op in module.OPERATIONS if not only or op.name in only
        ]
        self._weights = [shape.weight for _, shape in self.rows]

    def favour(self, names: Collection[str]) -> None:
        """Choose these operations more often from now on."""
        self._weights = [shape.weight * (1 if op.name not in names else _FAVOURED) for op, shape in self.rows]

    def choose(self, chance: Chance) -> tuple[Op, Shape]:
        return chance.choices(self.rows, self._weights)[0]


class Requests:
    """The requests of a world, one after the other. They depend on the seed and on the answers so far."""

    def __init__(
        self,
        chance: Chance,
        services: Sequence[str],
        hosts: Mapping[str, str],
        only: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """``only`` these operations, by service; without it, all."""
        self._chance = chance
        self._services = services
        self._weights = [_WEIGHTS[each] for each in services]
        self._rows = {each: Rows(each, (only or {}).get(each, ())) for each in services}
        self._hosts = hosts
        self.pool = Pool()
        self.signer = Signer(ACCOUNT, OTHER)
        self._favoured: Mapping[str, Collection[str]] = dict.fromkeys(services, ())
        self._first: list[FuzzRequest] = []
        self.begin_again()

    def begin_again(self) -> None:
        """Create the first resources before anything else."""
        self._first = [each for each in first_requests() if each.service in self._services]

    def skip_first(self) -> None:
        """What the first requests create is there already."""
        self._first = []

    def favour(self, names: Mapping[str, Collection[str]]) -> None:
        """Choose these operations, by service, more often from now on."""
        self._favoured = names
        for service, rows in self._rows.items():
            rows.favour(names[service])

    def next(self, now: Instant) -> tuple[FuzzRequest, bytes]:
        chance = self._chance
        if self._first:
            request = self._first.pop(0)
            host = self._hosts[request.service]
            return request, self.signer.encode(request, host=host, now=now, chance=chance)
        service = chance.choices(self._services, self._weights)[0]
        scope = Scope(
            chance, self.pool, service, now, ACCOUNT.name, self._hosts, self.signer.account_sas(now)
        )
        own = recorded(service)
        if own and chance.random() < _RECORDED_RATE:
            request = request_of(chance.choice(own), self._hosts)
            scope.path = request.path
        else:
            op, shape = self._rows[service].choose(chance)
            request = build(scope, shape, op)
            if op.name in self._favoured[service] and chance.random() < 0.2:
                other_credentials(scope, request)
        if chance.random() < _MUTATION_RATE:
            mutate(scope, request)
            _keep_sources_short(request)
        return request, self.signer.encode(request, host=self._hosts[service], now=now, chance=chance)


def _keep_sources_short(request: FuzzRequest) -> None:
    """Blobs and files are short, or too long to be copied from a URL: gigabytes of zeros would take minutes."""
    for at, (name, value) in enumerate(request.headers):
        if name.lower() in _LENGTHS and _COPIED_MAX < (numbers.decode(value) or 0) <= _COPYABLE_MAX:
            request.headers[at] = name, _BEYOND_COPYABLE
