"""What a management command is: a name, a typed request, and a coroutine that carries it out.

``commands.py`` is the table of all commands. One worker carries them out, whichever way they came in: from the command
line through a socket in the store's folder (``command_server.py``), or over HTTP through the admin port
(``http_api.py``).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from kyanite.engine.api import Engine, EngineError, Transaction
from kyanite.model import account_rows
from kyanite.model.accounts import Account
from kyanite.model.requests.questions import Questions
from kyanite.rules.refusals import Explained, Refused
from kyanite.server.accounts.directory import Late, all_obey
from kyanite.server.failures import Failure
from kyanite.server.processes.process_table import Slot
from kyanite.server.site import Site
from kyanite.server.stamps.served import ServedStamps
from kyanite.server.store.api import Clock
from kyanite.values import Instant

_log = logging.getLogger("kyanite.management")


class Management(msgspec.Struct, frozen=True):
    """What commands work on."""

    stamps: ServedStamps
    clock: Clock
    workers: Mapping[str, Slot]
    """All workers of this node, by name."""
    late_elsewhere: Late | None = None
    """Which processes of all nodes may not obey a change yet; None if there is one node only."""
    site: Site | None = None
    """Where the server is reached."""
    questions: Questions | None = None
    """Asks all processes of all nodes why a request was refused."""

    @property
    def accounts(self) -> Mapping[str, Account]:
        """Those that are served at present, by name."""
        return self.stamps.accounts

    def account(self, name: str) -> Account:
        """The account that a command names. Fails with a sentence if there is none."""
        account = self.accounts.get(name)
        if account is None:
            raise CommandRefused(f"There is no account {name!r}.")
        return account

    async def obeyed(self, engine: Engine) -> None:
        """Returns when every process has read what this engine says about accounts."""
        main = self.stamps.main.store.engine
        changed_at = await (main.read(account_rows.last_change) if engine is main else main.run(_note_change))
        await all_obey(self.workers, changed_at, self.late_elsewhere)


def _note_change(tx: Transaction) -> Instant:
    """The accounts of another stamp have changed, which every process learns from the main one."""
    account_rows.note_change(tx)
    return tx.now


class CommandRefused(Failure):
    """The command is understood, but not carried out. The sentence says why."""


class UnknownCommand(Failure):
    """There is no such command, or its arguments are not those that it takes."""

    exit_code = 2


class CommandRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of the requests: the arguments of a command by name, as JSON has them."""


class Command(msgspec.Struct, frozen=True):
    name: str
    """Words with spaces, as they are typed: ``account list``."""
    request: type[CommandRequest]
    run: Callable[[Management, Any], Awaitable[object]]
    """Gets a request of that type. What it returns is encoded as JSON: a struct, a dataclass, a list, a dict …"""
    is_quiet: bool = False
    """Whether the log leaves it out, unless everything is logged: programs ask often, and nothing changes."""


async def carry_out(
    commands: Mapping[str, Command], management: Management, name: str, arguments: object
) -> object:
    """Run a command and return its result. Raises a Failure with one sentence, whatever goes wrong."""
    command = commands.get(name)
    if command is None:
        raise UnknownCommand(f"The server has no command {name!r}.")
    try:
        request = msgspec.convert(arguments, command.request)
    except msgspec.ValidationError as error:
        raise UnknownCommand(f"The arguments of {name!r} cannot be used: {error}.") from None
    try:
        result = await command.run(management, request)
    except Failure:
        raise
    except Refused as refusal:
        raise CommandRefused(_sentence_of(refusal)) from None
    except EngineError as error:
        raise CommandRefused(f"The store does not work at present: {error}.") from None
    except Exception:
        _log.exception("command failed", extra={"command": name})
        raise Failure("The command failed. The log of the server says why.") from None
    _log.log(logging.DEBUG if command.is_quiet else logging.INFO, "command", extra={"command": name})
    return result


def _sentence_of(refusal: Refused) -> str:
    """The sentence of the refusal, or what a client of the Blob service would read for it."""
    if isinstance(refusal.detail, Explained):
        return refusal.detail.text
    from kyanite.services.blob.errors import REASONS
    from kyanite.services.rest.context import Resource

    error = REASONS[Resource.CONTAINER].get(refusal.reason)
    if error is None:
        return f"The server refuses this: {refusal.reason.name}."
    return f"{error.code}: {error.message}"
