"""How a command is found, read, run and refused, whichever way it comes in."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kyanite.engine.api import EngineBusy
from kyanite.rules.refusals import Explained, Reason, Refused
from kyanite.server.failures import Failure
from kyanite.server.management.command import Command, CommandRefused, CommandRequest, Management, carry_out
from kyanite.server.management.commands import COMMANDS
from tests.server.management.managed import management_of
from tests.services.harness import Harness


class Greet(CommandRequest, frozen=True):
    name: str
    times: int = 1


def commands(run: Callable[[str], object]) -> dict[str, Command]:
    async def greet(_management: Management, request: Greet) -> object:
        return run(request.name * request.times)

    return {"greet": Command("greet", Greet, greet)}


@pytest.fixture
def service(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def refuse(error: Exception) -> Callable[[str], object]:
    def run(_name: str) -> object:
        raise error

    return run


async def test_a_command_gets_its_typed_request(service: Harness) -> None:
    result = await carry_out(commands(str.upper), management_of(service), "greet", {"name": "ab", "times": 2})
    assert result == "ABAB"


@pytest.mark.parametrize(
    ("name", "arguments", "says", "exit_code"),
    [
        ("wave", {}, "The server has no command 'wave'.", 2),
        ("greet", {}, "missing required field `name`", 2),
        ("greet", {"name": 1}, "Expected `str`", 2),
        ("greet", {"name": "x", "loudly": True}, "unknown field `loudly`", 2),
        ("greet", [], "cannot be used", 2),
    ],
)
async def test_what_cannot_be_read(
    name: str, arguments: object, says: str, exit_code: int, service: Harness
) -> None:
    with pytest.raises(Failure) as failed:
        await carry_out(commands(str.upper), management_of(service), name, arguments)
    assert says in failed.value.sentence
    assert failed.value.exit_code == exit_code


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (CommandRefused("It is fixed."), "It is fixed."),
        (
            Refused(Reason.CONTAINER_NOT_FOUND),
            "ContainerNotFound: The specified container does not exist.",
        ),
        (Refused(Reason.PROTECTION_CANNOT_CHANGE, Explained("It is locked.")), "It is locked."),
        (Refused(Reason.QUEUE_NOT_FOUND), "The server refuses this: QUEUE_NOT_FOUND."),
        (EngineBusy("busy"), "The store does not work at present: busy."),
        (ZeroDivisionError(), "The command failed. The log of the server says why."),
    ],
)
async def test_what_goes_wrong_is_one_sentence(error: Exception, says: str, service: Harness) -> None:
    with pytest.raises(Failure) as failed:
        await carry_out(commands(refuse(error)), management_of(service), "greet", {"name": "x"})
    assert failed.value.sentence == says
    assert failed.value.exit_code == 1


def test_the_table_has_every_command_by_its_name() -> None:
    assert all(name == command.name for name, command in COMMANDS.items())
    for command in COMMANDS.values():
        assert issubclass(command.request, msgspec.Struct)
        assert command.request.__struct_config__.forbid_unknown_fields


def test_an_account_is_found_by_its_name(service: Harness) -> None:
    assert management_of(service).account("acme").name == "acme"
    with pytest.raises(CommandRefused) as refused:
        management_of(service).account("nobody")
    assert refused.value.sentence == "There is no account 'nobody'."
