"""Runs are kept as lines, and the README and its chart are made of them."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.report import chart, history, readme
from bench.report.history import Figures, Machine, RowRecord, RunRecord, row_record
from bench.report.results import Measure, Result
from bench.report.tables import heading
from msgspec.structs import replace

MACHINE = Machine(processor="Processor 3000", cores=2, kernel="6.1.0", python="3.11.2")
ROWS = (
    RowRecord(
        name="put-1k/1",
        title="Put Blob 1 KiB",
        unit="/s",
        servers={"kyanite": Figures((100.0,)), "azurite": Figures((50.0,))},
        clients=1,
        client="wrk",
        bars=("≥ 5× azurite",),
        verdict="miss",
    ),
    RowRecord(
        name="put-1k/32",
        title="Put Blob 1 KiB",
        unit="/s",
        servers={"kyanite": Figures((3000.0, 2000.0, 2900.0)), "azurite": Figures((100.0,))},
        clients=32,
        client="wrk",
        bars=("≥ 28× azurite",),
        verdict="pass",
    ),
    RowRecord(name="file-cycle/1", title="files", unit="/s", servers={"kyanite": Figures((7.0,))}, clients=1),
    RowRecord(
        name="start",
        title="start",
        unit=" s",
        servers={"kyanite": Figures((0.3,)), "azurite": Figures((1.5,))},
        bars=("≤ 0.4 s",),
        verdict="pass",
    ),
)
RUN = RunRecord(
    at="2026-01-02T03:04Z",
    commit="abc",
    form="compiled",
    machine=MACHINE,
    versions={"Azurite": "3.37.0"},
    seconds=2.0,
    rounds=3,
    rows=ROWS,
)


def test_a_run_comes_back_from_its_line(tmp_path: Path) -> None:
    path = tmp_path / "history"
    assert history.load(path) == []
    history.add(path, RUN)
    history.add(path, RUN)
    assert path.read_bytes().count(b"\n") == 2
    assert history.load(path) == [RUN, RUN]


def test_a_result_is_kept_with_its_rounds_and_the_medians_of_the_rest() -> None:
    result = Result("put/32", "Put Blob", "/s", (), 32, "wrk")
    for value in (100.123456, 300.0, 200.0):
        result.add("kyanite", value)
        measure = Measure(value, 1.0, 2.0, value, 5.0, 7.0, 9.0)
        result.measures.setdefault("kyanite", []).append(measure)
    figures = row_record(result).servers["kyanite"]
    assert figures == Figures((100.12, 300.0, 200.0), 205.0, 5.0, 7.0, 1.0, 2.0, 9.0)
    assert figures.median == 200.0
    assert figures.spread == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("version", "form"),
    [
        ("kyanite, version 0.1.0", "interpreted"),
        ("kyanite 0.1.0 (interpreted)", "interpreted"),
        ("kyanite 0.1.0 (compiled, 65 modules)", "compiled"),
    ],
)
def test_the_form_is_what_the_program_says(version: str, form: str) -> None:
    assert history.form_of(version) == form


def test_only_a_whole_run_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LOCAL", tmp_path / "local")
    monkeypatch.setattr(history, "PUBLISHED", tmp_path / "published")
    names = [row.name for row in ROWS]
    with pytest.raises(SystemExit, match="no run"):
        history.publish(names)
    history.add(history.LOCAL, RUN)
    with pytest.raises(SystemExit, match=r"lacks 1 rows .* other"):
        history.publish([*names, "other/32"])
    assert history.publish(names) == RUN
    history.publish(names)
    assert history.load(history.PUBLISHED) == [RUN]


def test_rows_that_failed_are_completed_by_a_later_run() -> None:
    failed = replace(RUN.rows[0], verdict="FAILED")
    first = replace(RUN, rows=(failed, *RUN.rows[1:]))
    again = replace(RUN, at="2027-01-01T00:00Z", rows=RUN.rows[:1])
    whole = history.completed([replace(first, commit="another"), first, again])
    assert whole == replace(RUN, note=whole.note)
    assert "measured again" in whole.note
    assert history.completed([first, replace(again, commit="another")]).rows == again.rows
    assert history.completed([RUN, replace(again, rows=(failed,))]).rows == RUN.rows


def test_the_table_has_a_line_for_all_clients_of_a_work() -> None:
    assert readme.table(RUN)[1:] == [
        ["Put Blob 1 KiB", "32", "2,900/s", "100/s", "29.0×", "2.00×"],
        ["files", "1", "7.00/s", "", "", ""],
        ["start", "", "0.30 s", "1.50 s", "", ""],
    ]


def test_figures_are_written_between_the_marks() -> None:
    text = f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n"
    written = readme.with_figures(text, readme.figures(RUN))
    assert written.startswith(f"before\n{readme.BEGIN}\n<picture>")
    assert written.endswith(f"{readme.END}\nafter\n")
    assert "old" not in written
    assert heading(RUN) in written
    assert readme.with_figures(written, readme.figures(RUN)) == written
    with pytest.raises(SystemExit, match="marks"):
        readme.with_figures("text", readme.figures(RUN))


def test_the_readme_has_the_rows_that_say_most_and_the_page_has_all() -> None:
    titles = [line[0] for line in readme.table(RUN, readme.IN_README)[1:]]
    assert titles == ["Put Blob 1 KiB", "start"]
    assert "files" in readme.all_figures(RUN)
    assert "files" not in readme.figures(RUN)
    assert set(readme.IN_README) <= {
        row.name.partition("/")[0] for row in history.load(history.PUBLISHED)[-1].rows
    }


def test_the_heading_says_what_ran_where_and_how() -> None:
    assert heading(RUN) == (
        "Kyanite abc, compiled, Python 3.11.2; Azurite 3.37.0. Processor 3000, 2 cores, Linux 6.1.0. "
        "2026-01-02, 3 rounds of 2 s."
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_chart_is_the_same_every_time_and_has_every_ratio(tmp_path: Path, theme: str) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    chart.draw(RUN, first, theme)
    chart.draw(RUN, second, theme)
    assert first.read_bytes() == second.read_bytes()
    texts = [element.text for element in ElementTree.parse(first).iter("{http://www.w3.org/2000/svg}text")]
    assert {"Put Blob 1 KiB", "29.0× / 2.00×", "one client"} <= set(texts)
    assert "start" not in texts
    assert _digest(first) == chart.digest(chart.points(RUN))


def test_the_readme_and_its_charts_show_the_last_published_run() -> None:
    """``python -m bench --chart`` makes it so."""
    run = history.load(history.PUBLISHED)[-1]
    for path, written in ((readme.README, readme.figures(run)), (readme.PAGE, readme.all_figures(run))):
        text = path.read_text()
        assert readme.with_figures(text, written) == text
    for path in chart.PATHS.values():
        assert _digest(path) == chart.digest(chart.points(run))


def test_published_runs_say_nothing_of_hosts_and_paths() -> None:
    text = history.PUBLISHED.read_text()
    assert not re.search(r'"[^"]*(/home|/work|/tmp|/root|\.local|\w@\w)[^"]*"', text)


def _digest(path: Path) -> str:
    found = re.search(r"<dc:description>(\w+)</dc:description>", path.read_text())
    assert found is not None
    return found[1]
