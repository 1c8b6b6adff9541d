"""Runs many requests: ``python -m tests.services.fuzzing --requests 1000000 --service blob``.

A failure is printed as soon as it is found. ``--shrink`` finds out which of the requests before it are needed.
``--workers 2`` takes a server of its own with two workers, and several clients at once.
"""

import argparse
import asyncio
import time

import uvloop

from tests.services.fuzzing.heavy import run_heavy
from tests.services.fuzzing.remote import run_remote
from tests.services.fuzzing.report import Failure, Report
from tests.services.fuzzing.requests import SERVICES
from tests.services.fuzzing.run import REQUESTS_PER_WORLD, Sent, run
from tests.services.fuzzing.shrinking import shrink

_PRINTED_EVERY = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--service", action="append", choices=list(SERVICES))
    parser.add_argument("--world", type=int, default=0, help="the first world to run")
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument(
        "--workers", type=int, default=0, help="of a real server, instead of one in this process"
    )
    parser.add_argument(
        "--heavy", type=int, default=0, help="lists and queries of so many blobs, entities, ranges"
    )
    options = parser.parse_args()
    began = time.monotonic()
    if options.heavy:
        report, slowest = asyncio.run(run_heavy(options.seed, options.requests, options.heavy))
        print("\n".join(f"{seconds:.2f} s {text}" for seconds, text in slowest))
        _print(report, time.monotonic() - began)
        return
    services = options.service or tuple(SERVICES)
    if options.workers:
        report = run_remote(options.seed, options.requests, services, workers=options.workers)
        _print(report, time.monotonic() - began)
        print("\n".join(failure.recipe() for failure in report.failures))
        return
    found: list[tuple[Failure, list[Sent]]] = []

    def on_failure(failure: Failure, sent: list[Sent]) -> None:
        print(failure.recipe(), flush=True)
        found.append((failure, sent))

    def on_world(report: Report) -> None:
        if report.requests % _PRINTED_EVERY < REQUESTS_PER_WORLD:
            print(f"{report.requests} requests after {time.monotonic() - began:.0f} s", flush=True)

    report = uvloop.run(
        run(
            options.seed,
            options.requests,
            services,
            first_world=options.world,
            failures_max=options.failures,
            on_failure=on_failure,
            on_world=on_world,
        )
    )
    _print(report, time.monotonic() - began)
    if options.shrink:
        for failure, sent in found:
            print(f"the requests that are needed for: {failure.problem.splitlines()[0]}")
            for each in asyncio.run(shrink(sent, failure.problem)):
                print(f"  {each.octets[:2000]!r}")


def _print(report: Report, seconds: float) -> None:
    for line in report.lines():
        print(line)
    print(f"{report.requests} requests in {seconds:.0f} s, {len(report.failures)} failures")


if __name__ == "__main__":
    main()
