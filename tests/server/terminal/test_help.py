"""The table of commands, their help, and what each imports."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from kyanite.server.cli import kyanite
from kyanite.server.terminal.lazy_group import LazyGroup

assert isinstance(kyanite, LazyGroup)
_NAMES = kyanite.list_commands(click.Context(kyanite))


def help_of(*words: str) -> str:
    result = CliRunner().invoke(kyanite, [*words, "--help"], prog_name="kyanite")
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", _NAMES)
def test_every_command_is_there(name: str) -> None:
    assert f"Usage: kyanite {name} " in help_of(name)


def test_commands_come_in_sections() -> None:
    text = help_of()
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Options:",
        "Serve:",
        "Connect:",
        "What is stored:",
        "A running server:",
        "A store:",
        "The shell:",
    ]
    assert "kyanite serve  " in text.split("Examples:")[1]
    assert "  verify " in text.split("A store:")[1]


def test_options_of_serve_come_in_sections() -> None:
    text = help_of("serve")
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings[:2] == ["Where data is:", "Services and ports:"]
    assert headings[-1] == "Others:"
    for name in ("--location", "--blob-port", "--account", "--log-level", "--workers", "--testing", "--help"):
        assert text.count(f"  {name} ") == 1, name


def test_an_unknown_command() -> None:
    result = CliRunner().invoke(kyanite, ["sevre"])
    assert result.exit_code == 2
    assert "No such command 'sevre'" in result.output


def test_the_command_line_imports_no_command() -> None:
    """So each starts as quickly as what it needs itself."""
    program = (
        "import sys; before = set(sys.modules); import kyanite.server.cli; "
        "print(*(name for name in set(sys.modules) - before if name.startswith('kyanite')))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(result.stdout.split()) == {
        "kyanite",
        "kyanite.server",
        "kyanite.server.cli",
        "kyanite.server.failures",
        "kyanite.server.terminal",
        "kyanite.server.terminal.help_sections",
        "kyanite.server.terminal.lazy_group",
    }
