"""Results as a table of suites, and the sub-tests on which the two servers differ."""

from collections.abc import Mapping, Sequence

from tests.smb.torture.runs import Run
from tests.smb.torture.subtests import REQUIRED, by_suite

Runs = Mapping[str, Run]


def table(smbd: Runs, kyanite: Runs, names: Sequence[str]) -> str:
    """A row for each suite: sub-tests, how many each server passes, and how many of smbd's this one passes."""
    rows = ["| suite | sub-tests | smbd | Kyanite | of smbd's |", "| --- | ---: | ---: | ---: | ---: |"]
    suites = by_suite(names)
    rows += [_row(suite, smbd, kyanite, members) for suite, members in suites.items()]
    required = [name for suite in REQUIRED for name in suites.get(suite, [])]
    if required:
        rows.append(_row("**the fourteen required**", smbd, kyanite, required))
    return "\n".join([*rows, _row("**all**", smbd, kyanite, names)])


def _row(title: str, smbd: Runs, kyanite: Runs, names: Sequence[str]) -> str:
    by_smbd, by_kyanite = _passed(smbd, names), _passed(kyanite, names)
    both = len(by_smbd & by_kyanite)
    share = f"{both} ({100 * both // len(by_smbd)} %)" if by_smbd else "–"
    return f"| {title} | {len(names)} | {len(by_smbd)} | {len(by_kyanite)} | {share} |"


def _passed(runs: Runs, names: Sequence[str]) -> set[str]:
    return {name for name in names if name in runs and runs[name].has_passed}


def differences(smbd: Runs, kyanite: Runs, names: Sequence[str]) -> list[str]:
    """The sub-tests that smbd passes and this server does not, with what smbtorture says of it."""
    missed = [name for name in names if name in kyanite and not kyanite[name].has_passed]
    return [
        f"{name}: {kyanite[name].outcome}, {kyanite[name].seconds} s\n{_indented(kyanite[name].output)}"
        for name in missed
        if name in smbd and smbd[name].has_passed
    ]


def _indented(output: str, lines: int = 12) -> str:
    return "\n".join(f"    {line}" for line in output.splitlines()[-lines:])
