"""What pages say of options, operations, metrics and decisions is what the code has: ``make docs`` writes it."""

from pathlib import Path

import pytest
from documentation import decisions, metrics, operations, options
from documentation.generated import PARTS
from documentation.pages import ROOT, pages, parts_of, with_parts

GENERATED = [page for page in pages() if parts_of(page.read_text())]


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_a_page_is_what_make_docs_writes(page: Path) -> None:
    text = page.read_text()
    assert with_parts(text, PARTS) == text, "make docs writes it again"


def test_every_part_is_on_a_page() -> None:
    used = [name for page in GENERATED for name in parts_of(page.read_text())]
    assert sorted(used) == sorted(PARTS)


def test_every_option_variable_and_command_is_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert len(options.all_variables()) > 30
    of_program = {"--help", "--version"}
    for name in (options.all_options() - of_program) | options.all_variables():
        assert f"`{name}`" in page, name
    for row in options.commands():
        assert f"kyanite {row.path}" in page


def test_every_operation_and_metric_and_decision_is_documented() -> None:
    page = (ROOT / "docs" / "compatibility.md").read_text()
    assert len(operations.names()) > 100
    assert not [name for name in operations.names() if f"| {name} |" not in page]
    page = (ROOT / "docs" / "operations.md").read_text()
    assert not [
        name
        for name in metrics.names()
        if f"`{name.removesuffix('_bucket')}" not in page and "_seconds_" not in name
    ]
    page = (decisions.FOLDER / "README.md").read_text()
    assert not [path.name for path in decisions.files() if f"({path.name})" not in page]


def test_an_operation_that_is_not_there_is_not_promised() -> None:
    table = operations.rest_table("blob").splitlines()
    states = {
        line.split(" | ")[0].removeprefix("| "): line.split(" | ")[-1].removesuffix(" |") for line in table
    }
    assert states["Put Blob"] == "yes"
    assert states["Query Blob Contents"] == "501"


def test_a_part_is_written_between_its_marks() -> None:
    text = "a\n<!-- generated: x -->\nold\n<!-- generated: end -->\nb\n"
    written = with_parts(text, {"x": lambda: "new"})
    assert written == "a\n<!-- generated: x -->\nnew\n<!-- generated: end -->\nb\n"
    with pytest.raises(KeyError):
        with_parts(text, {})
