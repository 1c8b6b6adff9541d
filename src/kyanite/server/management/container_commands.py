"""The commands about containers: what Azure's control plane does to them, above all their protection."""

from collections.abc import Sequence

import msgspec

from kyanite.model.accounts import Account
from kyanite.model.blobs import container, protection
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.protection import ChangeContainer
from kyanite.rules import immutability, names, system_containers
from kyanite.rules.immutability import Appends, ContainerProtection
from kyanite.server.management.command import Command, CommandRefused, CommandRequest, Management


class ContainerRequest(CommandRequest, frozen=True):
    account: str
    container: str


class CreateContainer(ContainerRequest, frozen=True):
    version_level_immutability: bool = False


class SetContainer(ContainerRequest, frozen=True):
    version_level_immutability: bool


class SetPolicy(ContainerRequest, frozen=True):
    days: int
    append_writes: Appends = Appends.NONE


class ExtendPolicy(ContainerRequest, frozen=True):
    days: int


class SetLegalHold(ContainerRequest, frozen=True):
    tags: Sequence[str]
    append_writes: bool | None = None
    """Whether append blobs may grow; None leaves it as it is."""


class ClearLegalHold(ContainerRequest, frozen=True):
    tags: Sequence[str]


class ProtectionDescription(msgspec.Struct, frozen=True):
    """The protection of a container as the operator reads it."""

    version_level_immutability: bool
    policy_days: int | None
    policy_state: str | None
    """``Unlocked`` or ``Locked``, in Azure's spelling."""
    policy_extensions: int
    policy_append_writes: str
    legal_hold_tags: tuple[str, ...]
    legal_hold_append_writes: bool


def _described(found: ContainerProtection) -> ProtectionDescription:
    policy = found.policy
    return ProtectionDescription(
        found.is_version_level,
        None if policy is None else policy.days,
        None if policy is None else "Locked" if policy.is_locked else "Unlocked",
        0 if policy is None else policy.extensions,
        "" if policy is None else policy.appends.value,
        found.legal_hold_tags,
        found.legal_hold_allows_appends,
    )


async def create(management: Management, request: CreateContainer) -> None:
    """In an account with version-level immutability every new container has it."""
    account, key = _target(management, request, "Create Container")
    names.check_container(request.container)
    await container.create(
        account.store.engine,
        key,
        metadata={},
        public_access="",
        is_version_level=request.version_level_immutability or account.settings.version_level_immutability,
    )


async def set_settings(management: Management, request: SetContainer) -> ProtectionDescription:
    if not request.version_level_immutability:
        raise CommandRefused("Version-level immutability cannot be switched off.")
    account, key = _target(management, request, "Set Container")
    return _described(await protection.enable_version_level(account.store.engine, key))


async def delete(management: Management, request: ContainerRequest) -> None:
    account, key = _target(management, request, "Delete Container")
    await protection.delete_container(account.store.engine, key)


async def show(management: Management, request: ContainerRequest) -> ProtectionDescription:
    account = management.account(request.account)
    key = ContainerKey(account.name, request.container)
    return _described(await protection.get(account.store.engine, key))


async def set_policy(management: Management, request: SetPolicy) -> ProtectionDescription:
    days, appends = request.days, request.append_writes
    return await _change(
        management, request, lambda before: immutability.set_container_policy(before, days, appends)
    )


async def lock_policy(management: Management, request: ContainerRequest) -> ProtectionDescription:
    return await _change(management, request, immutability.lock_container_policy)


async def extend_policy(management: Management, request: ExtendPolicy) -> ProtectionDescription:
    days = request.days
    return await _change(
        management, request, lambda before: immutability.extend_container_policy(before, days)
    )


async def delete_policy(management: Management, request: ContainerRequest) -> ProtectionDescription:
    return await _change(management, request, immutability.delete_container_policy)


async def set_legal_hold(management: Management, request: SetLegalHold) -> ProtectionDescription:
    tags, appends = tuple(request.tags), request.append_writes
    return await _change(
        management,
        request,
        lambda before: immutability.set_legal_holds(before, tags, allows_appends=appends),
    )


async def clear_legal_hold(management: Management, request: ClearLegalHold) -> ProtectionDescription:
    tags = tuple(request.tags)
    return await _change(management, request, lambda before: immutability.clear_legal_holds(before, tags))


async def _change(
    management: Management, request: ContainerRequest, change: ChangeContainer
) -> ProtectionDescription:
    account, key = _target(management, request, "Set Container")
    return _described(await protection.change_container(account.store.engine, key, change))


def _target(
    management: Management, request: ContainerRequest, operation: str
) -> tuple[Account, ContainerKey]:
    """The account and the container that a command changes. Those that the server alone writes are refused."""
    account = management.account(request.account)
    if account.settings.read_only:
        raise CommandRefused(f"The account {account.name} is read-only.")
    system_containers.check_write(request.container, operation)
    return account, ContainerKey(account.name, request.container)


COMMANDS = (
    Command("container create", CreateContainer, create),
    Command("container set", SetContainer, set_settings),
    Command("container delete", ContainerRequest, delete),
    Command("container immutability show", ContainerRequest, show),
    Command("container immutability set", SetPolicy, set_policy),
    Command("container immutability lock", ContainerRequest, lock_policy),
    Command("container immutability extend", ExtendPolicy, extend_policy),
    Command("container immutability delete", ContainerRequest, delete_policy),
    Command("container legal-hold set", SetLegalHold, set_legal_hold),
    Command("container legal-hold clear", ClearLegalHold, clear_legal_hold),
)
