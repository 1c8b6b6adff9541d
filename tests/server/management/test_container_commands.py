"""The commands about containers, as they are carried out: what they answer, and the sentences of their refusals."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kyanite.model import settings
from kyanite.server.failures import Failure
from kyanite.server.management.command import carry_out
from kyanite.server.management.commands import COMMANDS
from kyanite.service_properties import ServiceProperties
from tests.server.management.managed import management_of
from tests.services.harness import Harness

UNPROTECTED: dict[str, Any] = {
    "version_level_immutability": False,
    "policy_days": None,
    "policy_state": None,
    "policy_extensions": 0,
    "policy_append_writes": "",
    "legal_hold_tags": [],
    "legal_hold_append_writes": False,
}


class Operator:
    """Sends commands about the container ``box`` of a harness."""

    def __init__(self, service: Harness) -> None:
        self.service = service
        self._management = management_of(service)

    async def __call__(self, command: str, **arguments: object) -> Any:
        named = {"account": "acme", "container": "box", **arguments}
        result = await carry_out(COMMANDS, self._management, f"container {command}", named)
        return msgspec.json.decode(msgspec.json.encode(result))

    async def refusal(self, command: str, **arguments: object) -> str:
        with pytest.raises(Failure) as failed:
            await self(command, **arguments)
        return failed.value.sentence


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(Harness(tmp_path))


async def test_a_policy(operator: Operator) -> None:
    await operator("create")
    assert await operator("immutability show") == UNPROTECTED
    days = {"policy_days": 7, "policy_state": "Unlocked"}
    assert await operator("immutability set", days=7) == UNPROTECTED | days
    assert await operator("immutability delete") == UNPROTECTED
    await operator("immutability set", days=9, append_writes="append")
    assert await operator("immutability set", days=8, append_writes="all") == UNPROTECTED | days | {
        "policy_days": 8,
        "policy_append_writes": "all",
    }
    await operator("immutability set", days=7)
    locked = UNPROTECTED | days | {"policy_state": "Locked"}
    assert await operator("immutability lock") == locked
    assert await operator("immutability extend", days=8) == locked | {
        "policy_days": 8,
        "policy_extensions": 1,
    }
    assert await operator.refusal("immutability extend", days=8) == (
        "The policy is locked and has 8 days: it can only be extended."
    )
    assert await operator.refusal("immutability set", days=9) == (
        "The policy is locked: it can only be extended."
    )
    assert await operator.refusal("immutability delete") == "The policy is locked: it cannot be deleted."
    for days_more in range(9, 13):
        await operator("immutability extend", days=days_more)
    assert await operator.refusal("immutability extend", days=13) == (
        "The policy was extended 5 times already, which is the limit."
    )


async def test_legal_holds(operator: Operator) -> None:
    await operator("create")
    held = UNPROTECTED | {"legal_hold_tags": ["case1", "case2"]}
    assert await operator("legal-hold set", tags=["case2", "Case1"]) == held
    assert await operator("legal-hold set", tags=["case1"], append_writes=True) == held | {
        "legal_hold_append_writes": True
    }
    assert await operator.refusal("delete") == "The container has legal holds: clear them first."
    assert await operator("legal-hold clear", tags=["case1", "other"]) == held | {
        "legal_hold_tags": ["case2"],
        "legal_hold_append_writes": True,
    }
    assert await operator("legal-hold clear", tags=["case2"]) == UNPROTECTED
    assert await operator.refusal("legal-hold set", tags=["a-b"]) == (
        "The tag 'a-b' does not consist of 3 to 23 letters and digits."
    )


async def test_version_level_immutability(operator: Operator) -> None:
    sentence = (
        "BlobVersioningNotEnabled: Version-level immutability needs blob versioning, which the account does not "
        "have."
    )
    assert await operator.refusal("create", version_level_immutability=True) == sentence
    await operator("create", container="later")
    assert await operator.refusal("set", container="later", version_level_immutability=True) == sentence
    await settings.update(operator.service.engine, "acme", "blob", ServiceProperties(versioning=True))
    await operator("create", version_level_immutability=True)
    enabled = UNPROTECTED | {"version_level_immutability": True}
    assert await operator("immutability show") == enabled
    assert await operator("set", container="later", version_level_immutability=True) == enabled
    assert await operator.refusal("set", container="later", version_level_immutability=False) == (
        "Version-level immutability cannot be switched off."
    )
    assert await operator.refusal("legal-hold set", tags=["case1"]) == (
        "The container supports version-level immutability: set holds on its blobs."
    )
    assert await operator.refusal("immutability set", days=1, append_writes="append") == (
        "Version-level policies do not allow protected append writes."
    )


async def test_deleting_a_container(operator: Operator) -> None:
    await operator("create")
    await operator("immutability set", days=1)
    await operator("immutability lock")
    blobs = operator.service
    await blobs("PUT", "/box/b", {"x-ms-blob-type": "BlockBlob"}, b"data")
    assert await operator.refusal("delete") == (
        "The container has an immutability policy or supports version-level immutability: it can be deleted only "
        "when it is empty."
    )
    blobs.clock.now += 25 * 3600 * 10_000_000  # type: ignore[assignment]
    assert (await blobs("DELETE", "/box/b")).status == 202
    assert (await blobs("DELETE", "/box?restype=container")).code == "ContainerImmutabilityPolicyLocked"
    await operator("delete")
    assert (await blobs("HEAD", "/box?restype=container")).status == 404


@pytest.mark.parametrize(
    ("command", "arguments", "says"),
    [
        ("immutability show", {"account": "none"}, "There is no account 'none'."),
        ("immutability show", {"container": "none"}, "ContainerNotFound: "),
        ("immutability set", {"container": "none", "days": 1}, "ContainerNotFound: "),
        ("immutability set", {}, "missing required field `days`"),
        ("immutability set", {"days": 1, "append_writes": "some"}, "Invalid enum value"),
        ("immutability set", {"days": 0}, "A policy has between 1 and 146000 days."),
        ("immutability lock", {}, "The container has no immutability policy."),
        ("legal-hold set", {"tags": []}, "Name at least one tag."),
        ("create", {"container": "Box"}, "InvalidResourceName: "),
        ("create", {"container": "$logs"}, "The container $logs is written by the server only."),
        ("immutability set", {"container": "$logs", "days": 1}, "is written by the server only."),
        ("delete", {"container": "$logs"}, "is written by the server only."),
        ("create", {}, "ContainerAlreadyExists: "),
    ],
)
async def test_refusals_are_sentences(
    operator: Operator, command: str, arguments: dict[str, object], says: str
) -> None:
    await operator("create")
    assert says in await operator.refusal(command, **arguments)
