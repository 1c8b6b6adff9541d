"""When a row has passed: by medians, against every bar that can be judged, and never with an error."""

import pytest
from bench.gauges import GAUGES
from bench.report.bars import BARS, AtLeast, AtMost, Bar, bars_of
from bench.report.history import row_record
from bench.report.results import Result
from bench.report.tables import as_markdown, as_text, figure, summary
from bench.rows import ROWS

TEN_TIMES = AtLeast(10, "azurite")
THIRD_OF_NGINX = AtLeast(0.3, "nginx")


def _result(values: dict[str, list[float]], *bars: Bar) -> Result:
    result = Result("put/32", "Put Blob", "/s", bars, 32)
    for peer, rounds in values.items():
        for value in rounds:
            result.add(peer, value)
    return result


@pytest.mark.parametrize(
    ("values", "bars", "verdict"),
    [
        ({"kyanite": [99, 100, 900], "azurite": [1, 10, 11]}, [TEN_TIMES], "pass"),
        ({"kyanite": [99.9], "azurite": [10]}, [TEN_TIMES], "miss"),
        ({"kyanite": [100], "azurite": [10], "nginx": [400]}, [TEN_TIMES, THIRD_OF_NGINX], "miss"),
        ({"kyanite": [100], "azurite": [10]}, [TEN_TIMES, THIRD_OF_NGINX], "pass"),
        ({"azurite": [10]}, [TEN_TIMES, AtMost(1, " s")], ""),
        ({"kyanite": [0.7]}, [AtMost(0.7, " s")], "pass"),
        ({"kyanite": [0.71]}, [AtMost(0.7, " s")], "miss"),
        ({"kyanite": [5]}, [], ""),
    ],
)
def test_verdicts(values: dict[str, list[float]], bars: list[Bar], verdict: str) -> None:
    assert _result(values, *bars).verdict == verdict


def test_an_error_fails_whatever_the_figures_say() -> None:
    result = _result({"kyanite": [100], "azurite": [1]}, TEN_TIMES)
    result.errors.append("503")
    assert result.verdict == "FAILED"


def test_both_tables_show_medians_spreads_ratios_bars_and_the_verdict() -> None:
    result = _result({"kyanite": [12_345, 12_000, 13_000], "azurite": [1_000]}, TEN_TIMES)
    result.client = "wrk"
    table = summary([row_record(result)])
    assert as_markdown(table).splitlines()[2] == (
        "| Put Blob | 32 | 12,345/s | 4 % | 1,000/s |  | 12.3× |  |  |  | wrk | ≥ 10× azurite | pass |"
    )
    assert as_text(table).splitlines()[2].split() == (
        ["Put", "Blob", "32", "12,345/s", "4", "%", "1,000/s", "12.3×", "wrk", "≥", "10×", "azurite", "pass"]
    )


def test_servers_beside_azurite_have_their_ratios() -> None:
    table = summary([row_record(_result({"kyanite": [30], "nginx": [100], "md5": [40]}, THIRD_OF_NGINX))])
    assert table[1][7] == "0.30× nginx, 0.75× md5"


@pytest.mark.parametrize(
    ("name", "bars"),
    [
        ("get-1k/32", ["≥ 42× azurite", "≥ 0.38× nginx"]),
        ("get-1k/1", ["≥ 2× azurite"]),
        ("put-1k/1", ["≥ 5× azurite"]),
        ("put-64k/32", []),
        ("file-cycle/1", []),
        ("idle", ["≤ 60 MiB"]),
    ],
)
def test_bars_by_the_names_of_rows(name: str, bars: list[str]) -> None:
    assert [str(bar) for bar in bars_of(name)] == bars


def test_every_bar_belongs_to_a_row_or_gauge() -> None:
    names = {row.name for row in ROWS} | {gauge.name for gauge in GAUGES}
    assert set(BARS) <= names
    assert len(names) == len(ROWS) + len(GAUGES)


@pytest.mark.parametrize(
    ("value", "text"),
    [(12_345.6, "12,346"), (99.96, "100.0"), (12.34, "12.3"), (9.876, "9.88"), (0.0, "0.00")],
)
def test_figures_have_three_digits_that_matter(value: float, text: str) -> None:
    assert figure(value) == text
