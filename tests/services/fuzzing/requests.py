"""The requests of a world, one after the other: valid ones of every operation, and what mutations make of them."""

from collections.abc import Mapping, Sequence
from types import ModuleType

from kyanite.services.rest.operations import Op
from kyanite.values import Instant
from tests.services.fuzzing import blob_shapes, file_shapes, queue_shapes, table_shapes
from tests.services.fuzzing.corpus import recorded, request_of
from tests.services.fuzzing.mutations import mutate
from tests.services.fuzzing.oddities import Chance
from tests.services.fuzzing.pool import Pool
from tests.services.fuzzing.request import FuzzRequest
from tests.services.fuzzing.scope import Scope
from tests.services.fuzzing.seeds import first_requests
from tests.services.fuzzing.shapes import Shape, build, shape_of
from tests.services.fuzzing.signing import Signer
from tests.services.harness import ACCOUNT, OTHER

SERVICES: Mapping[str, ModuleType] = {
    "blob": blob_shapes,
    "queue": queue_shapes,
    "table": table_shapes,
    "file": file_shapes,
}
_WEIGHTS = {"blob": 4, "queue": 2, "table": 3, "file": 4}
_MUTATION_RATE = 0.55
_RECORDED_RATE = 0.15


class Rows:
    """The operations of a service with their shapes, chosen by weight."""

    def __init__(self, service: str) -> None:
        module = SERVICES[service]
        self.rows: list[tuple[Op, Shape]] = [(op, shape_of(module.SHAPES, op)) for op in module.OPERATIONS]
        self._weights = [shape.weight for _, shape in self.rows]

    def choose(self, chance: Chance) -> tuple[Op, Shape]:
        return chance.choices(self.rows, self._weights)[0]


class Requests:
    """The requests of a world, one after the other. They depend on the seed and on the answers so far."""

    def __init__(self, chance: Chance, services: Sequence[str], hosts: Mapping[str, str]) -> None:
        self._chance = chance
        self._services = services
        self._weights = [_WEIGHTS[each] for each in services]
        self._rows = {each: Rows(each) for each in services}
        self._hosts = hosts
        self.pool = Pool()
        self.signer = Signer(ACCOUNT, OTHER)
        self._first: list[FuzzRequest] = []
        self.begin_again()

    def begin_again(self) -> None:
        """Create the first resources before anything else."""
        self._first = [each for each in first_requests() if each.service in self._services]

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
        if chance.random() < _MUTATION_RATE:
            mutate(scope, request)
        return request, self.signer.encode(request, host=self._hosts[service], now=now, chance=chance)
