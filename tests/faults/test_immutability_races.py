"""Policies and holds beside writes and deletes, through several workers: what is protected is never lost."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobImmutabilityPolicyMode, ImmutabilityPolicy
from azure.storage.blob.aio import BlobClient, ContainerClient

from kyanite.server.management.client import call
from tests.server_process import ServerProcess

CLIENTS = 16
ROUNDS = 6
ACCOUNT = "kept"
KEY = "a2VwdCBpbW11dGFibGU="
SETTINGS = {"versioning": True, "version_level_immutability": True}
LOCKED, UNLOCKED = BlobImmutabilityPolicyMode.LOCKED, BlobImmutabilityPolicyMode.UNLOCKED


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "3", location=Path(tmp_path_factory.mktemp("races"))) as started:
        call(started.location, "account add", name=ACCOUNT, keys=[KEY], settings=SETTINGS)
        call(started.location, "account add", name=ServerProcess.account, keys=[started.account_key])
        yield started


def credential_of(server: ServerProcess, account: str) -> dict[str, str]:
    return {"account_name": account, "account_key": KEY if account == ACCOUNT else server.account_key}


@asynccontextmanager
async def clients(
    server: ServerProcess, container_name: str, *names: str, account: str = ACCOUNT
) -> AsyncIterator[list[BlobClient]]:
    """As many clients of these blobs, each with connections of its own, so that all workers are at it."""
    root = server.endpoints["blob"].replace(server.account, account)
    credential: Any = credential_of(server, account)
    container = ContainerClient.from_container_url(f"{root}/{container_name}", credential, retry_total=0)
    async with container:
        if not await container.exists():
            await container.create_container()
    made = [
        BlobClient.from_blob_url(
            f"{root}/{container_name}/{names[n % len(names)]}", credential, retry_total=0
        )
        for n in range(CLIENTS)
    ]
    try:
        yield made
    finally:
        await asyncio.gather(*(client.close() for client in made))


async def outcome(act: Callable[[], Awaitable[object]]) -> str:
    try:
        await act()
    except HttpResponseError as error:
        response: Any = error.response
        return str(response.headers["x-ms-error-code"])
    return "ok"


def policy(days: float, mode: BlobImmutabilityPolicyMode = UNLOCKED) -> ImmutabilityPolicy:
    until = (datetime.now(UTC) + timedelta(days=days)).replace(microsecond=0)
    return ImmutabilityPolicy(expiry_time=until, policy_mode=mode)


async def test_a_hold_beside_deletes(server: ServerProcess) -> None:
    """Either the hold is there first and no delete succeeds, or one delete does and there is nothing to hold."""
    for number in range(ROUNDS):
        async with clients(server, "holds", f"blob-{number}") as blobs:
            created = await blobs[0].upload_blob(b"data", legal_hold=False)
            holder, deleters = blobs[0], blobs[1:]
            outcomes = await asyncio.gather(
                *(outcome(blob.delete_blob) for blob in deleters[: CLIENTS // 2]),
                outcome(partial(holder.set_legal_hold, True)),
                *(outcome(blob.delete_blob) for blob in deleters[CLIENTS // 2 :]),
            )
            held = outcomes.pop(CLIENTS // 2)
            deleted = Counter(outcomes)
            if held == "ok":
                assert deleted == {"BlobImmutableDueToLegalHold": CLIENTS - 1}
                assert (await holder.get_blob_properties()).has_legal_hold
                await holder.set_legal_hold(False)
            else:
                assert held == "BlobNotFound"
                assert deleted == {"ok": 1, "BlobNotFound": CLIENTS - 2}
            old = await holder.download_blob(version_id=created["version_id"])
            assert await old.readall() == b"data"


@pytest.mark.parametrize("number", range(ROUNDS))
async def test_a_hold_of_the_container_beside_deletes(server: ServerProcess, number: int) -> None:
    """No delete that begins after the hold was acknowledged succeeds, whichever worker it comes to."""
    container = f"held-{number}"
    acknowledged = asyncio.Event()
    late: list[str] = []
    found: Counter[str] = Counter()

    async def set_legal_hold() -> None:
        arguments = {"account": server.account, "container": container, "tags": ["case1"]}
        await asyncio.to_thread(partial(call, server.location, "container legal-hold set", **arguments))
        acknowledged.set()

    async def delete(blob: BlobClient) -> None:
        for _ in range(6):
            is_late = acknowledged.is_set()
            ended = await outcome(blob.delete_blob)
            found[ended] += 1
            if is_late:
                late.append(ended)
            if ended == "ok":
                await blob.upload_blob(b"again")

    names = [f"blob-{n}" for n in range(CLIENTS)]
    async with clients(server, container, *names, account=server.account) as blobs:
        await asyncio.gather(*(blob.upload_blob(b"data") for blob in blobs))
        await asyncio.gather(set_legal_hold(), *(delete(blob) for blob in blobs))
        assert set(late) <= {"BlobImmutableDueToLegalHold"}
        assert set(found) <= {"ok", "BlobImmutableDueToLegalHold"}
        assert all(await asyncio.gather(*(blob.exists() for blob in blobs)))


async def test_a_locked_policy_beside_overwrites(server: ServerProcess) -> None:
    """Whatever version gets the policy, it stays with its bytes; and no version is lost."""
    for number in range(ROUNDS):
        async with clients(server, "overwrites", f"blob-{number}") as blobs:
            await blobs[0].upload_blob(b"first")
            wanted = policy(1, LOCKED)
            outcomes = await asyncio.gather(
                *(
                    outcome(partial(blob.upload_blob, b"%d" % n, overwrite=True))
                    for n, blob in enumerate(blobs[1:])
                ),
                outcome(partial(blobs[0].set_immutability_policy, wanted)),
            )
            assert set(outcomes) == {"ok"}
            root = blobs[0].url.rpartition("/")[0]
            credential: Any = credential_of(server, ACCOUNT)
            async with ContainerClient.from_container_url(root, credential) as container:
                listed = [
                    each
                    async for each in container.list_blobs(
                        name_starts_with=f"blob-{number}", include=["versions", "immutabilitypolicy"]
                    )
                ]
            versions = [each for each in listed if each.name == f"blob-{number}"]
            assert len(versions) == CLIENTS
            kept = [each for each in versions if each.immutability_policy.policy_mode == "locked"]
            assert [each.immutability_policy.expiry_time for each in kept] == [wanted.expiry_time]
            (only,) = kept
            refusal = await outcome(partial(blobs[0].delete_blob, version_id=only.version_id))
            assert refusal in ("BlobImmutableDueToPolicy", "OperationNotAllowedOnRootBlob")


async def test_locking_beside_shortening(server: ServerProcess) -> None:
    """Once the policy is locked it has the date of the lock, or a later one."""
    for number in range(ROUNDS):
        async with clients(server, "locks", f"blob-{number}") as blobs:
            await blobs[0].upload_blob(b"data", immutability_policy=policy(20))
            locking, shorter = policy(10, LOCKED), policy(1)
            outcomes = await asyncio.gather(
                *(outcome(partial(blob.set_immutability_policy, shorter)) for blob in blobs[2:8]),
                outcome(partial(blobs[0].set_immutability_policy, locking)),
                *(outcome(partial(blob.set_immutability_policy, shorter)) for blob in blobs[8:]),
                *(outcome(blob.delete_immutability_policy) for blob in blobs[1:2]),
            )
            assert outcomes[6] == "ok"
            assert set(outcomes) <= {
                "ok",
                "BlobImmutableDueToPolicy",
                "ImmutabilityPolicyDeleteOnLockedPolicy",
            }
            found = (await blobs[0].get_blob_properties()).immutability_policy
            assert (found.policy_mode, found.expiry_time) == ("locked", locking.expiry_time)


async def test_locking_the_policy_of_a_container_beside_shortening(server: ServerProcess) -> None:
    """Both are commands, one through each connection; after the lock nothing is shorter than what was locked."""
    for number in range(ROUNDS):
        name = f"container-{number}"
        named = {"account": server.account, "container": name}
        run = partial(call, server.location)
        run("container create", **named)
        run("container immutability set", days=30, **named)

        async def attempt(command: str, run: Any = run, named: Any = named, **arguments: object) -> Any:
            try:
                return await asyncio.to_thread(partial(run, command, **named, **arguments))
            except Exception as error:
                return str(error)

        answers = await asyncio.gather(
            *(attempt("container immutability set", days=days) for days in (20, 10)),
            attempt("container immutability lock"),
            *(attempt("container immutability set", days=days) for days in (5, 1)),
            attempt("container immutability delete"),
        )
        locked = answers[2]
        found = run("container immutability show", **named)
        if isinstance(locked, dict):
            assert found == locked
            assert found["policy_state"] == "Locked"
        else:
            assert "no immutability policy" in locked
