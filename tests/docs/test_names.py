"""Options, variables, metrics, commands and operations that pages name exist."""

import re
from pathlib import Path

import click
import pytest
from documentation import metrics, operations, options
from documentation.pages import ROOT, blocks_of, commands_of, pages, prose_of

from kyanite.server.cli import kyanite
from kyanite.testing import plugin

PAGES = [page for page in pages() if page.name != "CHANGELOG.md"]

OTHER_PROGRAMS = {
    "--trusted-microsoft-suffixes --from-to": "AzCopy",
    "--connection-string": "the Azure CLI",
    "--oauth": "Azurite",
    "--silent --skipApiVersionCheck --disableTelemetry": "Azurite",
    "--quick --installed --rows --rounds --peers --profile --growth": "make bench",
    "--publish --chart --note --folder --functions": "make bench",
    "--markdown": "python -m bench.scale",
    "--data-checksums": "initdb",
    "--offline": "systemd-analyze",
    "--store": "our tests",
}
FOREIGN = {name for names in OTHER_PROGRAMS for name in names.split()}
BUILD_VARIABLES = {"KYANITE_COMPILE", "KYANITE_TEST_FAILOVERS", "KYANITE_TEST_POSTGRES_BIN"}


def spans(text: str) -> list[str]:
    """The pieces of code inside of sentences."""
    return re.findall(r"`([^`\n]+)`", prose_of(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_exist(page: Path) -> None:
    named = {
        word
        for span in spans(page.read_text())
        if span.startswith("--")
        for word in re.findall(r"(?<!\S)--[a-z][A-Za-z-]+", span)
    }
    assert not named - options.all_options() - FOREIGN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_variables_exist(page: Path) -> None:
    named = set(re.findall(r"\bKYANITE_[A-Z_]*[A-Z]\b", page.read_text()))
    assert not named - options.all_variables() - BUILD_VARIABLES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_metrics_exist(page: Path) -> None:
    named = set(re.findall(r"\bkyanite_[a-z_]+[a-z]\b", page.read_text()))
    assert not named - metrics.names() - set(vars(plugin))  # Or fixtures of the test kit.


def command_lines(page: Path) -> list[str]:
    in_blocks = [
        line
        for block in blocks_of(page)
        if block.language in ("console", "sh")
        for line in commands_of(block).replace("\\\n", " ").splitlines()
    ]
    found = [
        line[match.start(1) :]
        for line in in_blocks
        if (match := re.search(r"(?:^|[ (/])(kyanite [a-z])", line))
    ]
    return found + [span for span in spans(page.read_text()) if re.match(r"kyanite [a-z-]", span)]


def problem_of(line: str) -> str:
    """What a command line of ours names that is not there; empty if nothing."""
    words = re.split(r"[\s()]+", re.split(r"\s(?:#|\||&&|&|>)(?:\s|$)", line)[0])[1:]
    command: click.Command = kyanite
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        if words[0] in ("…", "COMMAND"):
            return ""
        alternatives = words.pop(0).split("|")
        found = {each: options.subcommand(command, each) for each in alternatives}
        for name, below in found.items():
            if below is None:
                return f"the command {name}"
            command = below
    known = {"--help", *(name for option in options.options_of(command) for name in option.opts)}
    if command is kyanite:
        known.add("--version")
    unknown = [word for word in words if re.match(r"--[a-z]", word) and word.partition("=")[0] not in known]
    return f"the option {unknown[0]}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_options_exist(page: Path) -> None:
    problems = [f"{line}: {problem}" for line in command_lines(page) if (problem := problem_of(line))]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("kyanite serve --in-memory", ""),
        ("kyanite account add mystore --location /srv # a comment --no", ""),
        ("kyanite polish", "the command polish"),
        ("kyanite serve --polish", "the option --polish"),
        ("kyanite account set x --polish on", "the option --polish"),
        ("kyanite account …", ""),
    ],
)
def test_what_is_not_there_is_noticed(line: str, problem: str) -> None:
    assert problem_of(line) == problem


VERBS = sorted({name.split()[0] for name in operations.names()} - {"Get", "Set", "Entity", "Find"})
OPERATION = re.compile(rf"\b(?:{'|'.join(VERBS)}|Get|Set)(?:(?: (?:From|and|by|Or))? [A-Z][A-Za-z]+)+")


def unknown_operations(text: str) -> list[str]:
    known = operations.names()
    return [
        each
        for each in OPERATION.findall(re.sub(r"\n +|\n(?=[A-Z])", " ", prose_of(text)))
        if not any(each == name or each.startswith(f"{name} ") or each == f"{name}s" for name in known)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_operations_exist(page: Path) -> None:
    assert not unknown_operations(page.read_text())


def test_an_operation_that_is_not_there_is_noticed() -> None:
    assert unknown_operations("Call Put Blob, then Put Sausage.") == ["Put Sausage"]


def test_the_root_has_pages() -> None:
    assert {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"} <= {
        page.name for page in PAGES if page.parent == ROOT
    }
