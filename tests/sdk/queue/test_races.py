"""Many clients at a time on one queue: each message to one of them, and the last writer wins, whole."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import AccessPolicy, CorsRule, Metrics, QueueSasPermissions, RetentionPolicy

from tests.sdk.accounts import OTHER_ACCOUNT, OTHER_KEY
from tests.sdk.clients import Sdk, at_once, done, items

WRITERS = 12
START = datetime(2030, 1, 1, tzinfo=UTC)


def assert_all_went_well(outcomes: list[Any]) -> None:
    assert not [one for one in outcomes if isinstance(one, BaseException)]


async def test_each_message_goes_to_one_of_many_receivers(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    await at_once(sdk, *(partial(queue.send_message, str(n)) for n in range(40)))
    clients = [sdk.queue(queue.queue_name) for _ in range(8)]
    got = []
    while True:
        outcomes = await at_once(sdk, *(client.receive_message for client in clients))
        assert_all_went_well(outcomes)
        if not any(outcomes):
            break
        got += [message for message in outcomes if message]
    assert Counter(message.content for message in got) == Counter(str(n) for n in range(40))
    outcomes = await at_once(sdk, *(partial(queue.delete_message, message) for message in got))
    assert_all_went_well(outcomes)
    assert (await done(queue.get_queue_properties())).approximate_message_count == 0


async def test_of_racing_updates_with_one_receipt_one_wins(sdk: Sdk) -> None:
    queue = await sdk.new_queue()
    await done(queue.send_message("before"))
    for _ in range(3):
        got = await done(queue.receive_message())
        texts = [f"by {number}" * 100 for number in range(WRITERS)]
        outcomes = await at_once(
            sdk,
            *(
                partial(queue.update_message, got.id, got.pop_receipt, visibility_timeout=0, content=text)
                for text in texts
            ),
        )
        won = [
            text
            for text, outcome in zip(texts, outcomes, strict=True)
            if not isinstance(outcome, BaseException)
        ]
        lost = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert len(won) == 1
        assert {(type(one), getattr(one, "error_code", "")) for one in lost} == {
            (ResourceNotFoundError, "MessageNotFound")
        }
        assert [message.content for message in await done(queue.peek_messages(32))] == won


async def test_racing_deletes_updates_and_receives_end_in_one_story(sdk: Sdk) -> None:
    """A message is deleted once, by a receipt that was the latest, or it is still there, once."""
    queue = await sdk.new_queue()
    for _ in range(5):
        sent = await done(queue.send_message("it"))
        receipt = (sent.id, sent.pop_receipt)
        deleted, updated, got = await at_once(
            sdk,
            partial(queue.delete_message, *receipt),
            partial(queue.update_message, *receipt, visibility_timeout=0, content="new"),
            queue.receive_message,
        )
        is_deleted = not isinstance(deleted, BaseException)
        is_updated = not isinstance(updated, BaseException)
        assert not (is_deleted and is_updated), "both had the same receipt"
        left = (await done(queue.get_queue_properties())).approximate_message_count
        assert left == (0 if is_deleted else 1)
        if is_deleted:
            assert got is None
        elif not is_updated:
            assert got.content == "it"
        await done(queue.clear_messages())


async def test_of_racing_metadata_one_is_left_whole(sdk: Sdk) -> None:
    queue = await sdk.new_queue(metadata=_metadata(0))
    found: list[Any] = []

    async def watch() -> None:
        for _ in range(20):
            found.append((await done(queue.get_queue_properties())).metadata)

    outcomes, _ = await asyncio.gather(
        at_once(
            sdk,
            *(partial(queue.set_queue_metadata, _metadata(n)) for n in range(1, WRITERS + 1)),
        ),
        watch(),
    )
    assert_all_went_well(outcomes)
    found.append((await done(queue.get_queue_properties())).metadata)
    assert all(one in [_metadata(n) for n in range(WRITERS + 1)] for one in found)
    assert found[-1] != _metadata(0)


def _metadata(number: int) -> dict[str, str]:
    return {f"name{field}": f"{number}-{field}" for field in range(number % 5 + 1)}


async def test_of_racing_policies_one_set_is_left_whole(sdk: Sdk) -> None:
    queue = await sdk.new_queue()

    def policies(number: int) -> dict[str, AccessPolicy]:
        permission = QueueSasPermissions(read=True, add=number % 2 == 0)
        return {
            f"policy-{number}-{index}": AccessPolicy(permission, START + timedelta(hours=number), START)
            for index in range(number % 5 + 1)
        }

    outcomes = await at_once(
        sdk, *(partial(queue.set_queue_access_policy, policies(n)) for n in range(WRITERS))
    )
    assert_all_went_well(outcomes)
    left = await done(queue.get_queue_access_policy())
    numbers = {int(name.split("-")[1]) for name in left}
    assert len(numbers) == 1
    (number,) = numbers
    assert set(left) == set(policies(number))
    assert {policy.permission for policy in left.values()} == {"ra" if number % 2 == 0 else "r"}


async def test_of_racing_service_properties_one_is_left_whole(sdk: Sdk) -> None:
    url = sdk.server.endpoints["queue"].replace("devstoreaccount1", OTHER_ACCOUNT)
    service = sdk.queue_service(url=url, credential=OTHER_KEY)

    def write(number: int) -> Any:
        kept = RetentionPolicy(enabled=True, days=number)
        return service.set_service_properties(
            hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=kept),
            minute_metrics=Metrics(enabled=True, include_apis=True, retention_policy=kept),
            cors=[CorsRule(["*"], ["GET"], max_age_in_seconds=number) for _ in range(number % 5 + 1)],
        )

    outcomes = await at_once(sdk, *(partial(write, n) for n in range(1, WRITERS + 1)))
    assert_all_went_well(outcomes)
    left = await done(service.get_service_properties())
    number = left["hour_metrics"].retention_policy.days
    assert 1 <= number <= WRITERS
    assert left["minute_metrics"].retention_policy.days == number
    assert [rule.max_age_in_seconds for rule in left["cors"]] == [number] * (number % 5 + 1)


async def test_of_racing_creations_one_creates(sdk: Sdk) -> None:
    service = sdk.queue_service()
    queue = await sdk.new_queue()
    await done(queue.delete_queue())
    outcomes = await at_once(
        sdk,
        *(
            lambda n=n: service.create_queue(queue.queue_name, metadata={"by": str(n)})
            for n in range(WRITERS)
        ),
    )
    assert sum(not isinstance(outcome, BaseException) for outcome in outcomes) == 1
    codes = {getattr(one, "error_code", None) for one in outcomes if isinstance(one, BaseException)}
    assert codes == {"QueueAlreadyExists"}
    assert len(await items(service.list_queues(name_starts_with=queue.queue_name))) == 1
