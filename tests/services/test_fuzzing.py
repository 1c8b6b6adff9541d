"""Thousands of requests to every operation, half of them not quite right: none fails, and the store stays sound."""

import pytest

from kyanite.services.queue import queue
from tests import profiles
from tests.services.fuzzing.client import Answer
from tests.services.fuzzing.heavy import run_heavy
from tests.services.fuzzing.oracle import problems
from tests.services.fuzzing.remote import run_remote
from tests.services.fuzzing.report import Failure, Report
from tests.services.fuzzing.request import FuzzRequest
from tests.services.fuzzing.requests import SERVICES, Rows
from tests.services.fuzzing.run import Sent, run, run_world
from tests.services.fuzzing.shrinking import shrink
from tests.services.fuzzing.tours.corpus import recorded

REQUESTS = 8_000
REMOTE_REQUESTS = 1_500
SEED = 12


async def test_no_request_fails_and_every_operation_is_reached() -> None:
    """Each operation is answered well at least once, and by two different errors."""
    report = await run(SEED, profiles.examples(REQUESTS))
    print("\n".join(report.lines()))
    assert not report.failures, report.failures[0].recipe()
    for word, module in SERVICES.items():
        missing = report.uncovered(word, module.OPERATIONS)
        assert not missing, [(name, report.answers[word, name]) for name in missing]
        assert report.successes[word] > report.by_service[word] / 4


def test_no_request_fails_at_a_real_server() -> None:
    """With several workers and clients; the store is verified at the end."""
    report = run_remote(SEED, profiles.examples(REMOTE_REQUESTS))
    print("\n".join(report.lines()))
    assert not report.failures, report.failures[0].recipe()
    assert report.requests > REMOTE_REQUESTS * 0.9


async def test_lists_and_queries_of_much() -> None:
    """How long they take depends on the machine, so it is printed only."""
    report, slowest = await run_heavy(SEED, profiles.examples(100), things=50)
    print("\n".join(f"{seconds:.2f} s {text}" for seconds, text in slowest))
    assert not report.failures, report.failures[0].recipe()


async def test_a_seed_is_always_the_same_requests() -> None:
    first, second = [await run_world(SEED, 1, 300, tuple(SERVICES), Report()) for _ in range(2)]
    assert [each.octets for each in first] == [each.octets for each in second]


async def test_a_bug_of_a_handler_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(metadata: object) -> list[tuple[str, str]]:
        if metadata:
            raise KeyError("planted")
        return []

    monkeypatch.setattr(queue, "metadata_headers", broken)
    found: list[tuple[Failure, list[Sent]]] = []
    await run(SEED, 2_000, ("queue",), on_failure=lambda failure, sent: found.append((failure, sent)))
    ((failure, sent),) = found
    assert "planted" in failure.problem
    assert "comp=metadata" in failure.recipe()
    needed = await shrink(sent, failure.problem)
    assert len(needed) <= 3
    assert needed[-1].octets == failure.sent


@pytest.mark.parametrize("service", list(SERVICES))
def test_every_operation_has_a_shape(service: str) -> None:
    """A new operation needs one."""
    rows = Rows(service).rows
    assert len(rows) == len(SERVICES[service].OPERATIONS)
    keys = {key.partition(" [")[0].partition(" @")[0] for key in SERVICES[service].SHAPES}
    assert keys == {op.name for op, _ in rows}


@pytest.mark.parametrize("service", list(SERVICES))
def test_requests_of_the_official_clients_are_there(service: str) -> None:
    methods = {each.method for each in recorded(service)}
    assert {"GET", "PUT", "DELETE"} <= methods
    assert len(recorded(service)) > 15


HEADERS = {"date": "x", "x-ms-request-id": "1", "x-ms-version": "2025-05-05"}
ERROR = HEADERS | {"x-ms-error-code": "A", "content-type": "application/xml"}
XML = HEADERS | {"content-type": "application/xml"}


@pytest.mark.parametrize(
    ("method", "answer", "problem"),
    [
        ("GET", Answer(200, "", HEADERS, b"", False), ""),
        ("GET", Answer(500, "", ERROR, b"<Error><Code>A</Code></Error>", False), "status 500"),
        ("GET", Answer(507, "", ERROR, b"<Error><Code>A</Code></Error>", False), "status 507"),
        ("GET", Answer(404, "", ERROR, b"<Error><Code>A</Code></Error>", False), ""),
        ("GET", Answer(404, "", ERROR, b"<Error><Code>B</Code></Error>", False), "the code in the body"),
        ("GET", Answer(404, "", ERROR, b"<Error><Code>A</Error>", False), "cannot be read"),
        ("GET", Answer(404, "", HEADERS, b"", False), "an error with the code"),
        ("HEAD", Answer(404, "", ERROR, b"x", False), "a body where none may be"),
        ("GET", Answer(200, "", {"date": "x"}, b"", False), "without x-ms-request-id"),
        ("GET", Answer(400, "", {"date": "x"}, b"", True), ""),
        ("GET", Answer(200, "", {"x-ms-request-id": "1", "x-ms-version": "x"}, b"", False), "no Date"),
        ("GET", Answer(200, "", {"date": "x", "x-ms-request-id": "1"}, b"", False), "no x-ms-version"),
        ("GET", Answer(200, "", XML, b"<a>", False), "XML that cannot be read"),
        (
            "POST",
            Answer(
                202, "", HEADERS | {"content-type": "multipart/mixed"}, b"--b\r\nHTTP/1.1 500 x\r\n", False
            ),
            "a part of a batch",
        ),
    ],
)
def test_the_oracle(method: str, answer: Answer, problem: str) -> None:
    request = FuzzRequest("blob", "", method, "/", headers=[("x-ms-version", "2025-05-05")])
    found = "; ".join(problems(request, method, answer))
    assert problem in found if problem else not found
