"""``docs/smb-torture.md``, made from the results."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.smb.torture import report, results
from tests.smb.torture.exceptions import reason_for
from tests.smb.torture.subtests import LEFT_OUT

PAGE = results.ROOT / "docs" / "smb-torture.md"

_HEAD = """\
# smbtorture

smbtorture is Samba's own test suite for SMB servers. `make smb-torture` starts Debian's smbd and Kyanite (two workers)
on loopback and runs every sub-test against both, each in a process of its own and on an empty share.
`make smb-torture ARGS='lock oplock'` runs some suites, `ARGS=--write-page` writes this page. `make test` runs the quick
sub-tests of the required suites against Kyanite; those that smbd passes are in `tests/smb/torture/smbd.json`.

smbd's configuration is in `tests/smb/smbd.py`: `acl_xattr` and `streams_xattr`, kernel oplocks and share modes off. The
user is root, because a session with the key of an account is above the permissions of files, too, and sessions have one
channel, as Kyanite's have. The last column counts the sub-tests that smbd passes and Kyanite passes as well.

"""


_OTHER_CONFIGURATIONS = """

With several channels, its default, smbd passes 171 sub-tests of the required suites, and Kyanite 161 of them:
`session.bind1`, `bind2`, `bind_invalid_auth`, `bind_negative_smb3signCtoHs`, `bind_negative_smb3signHtoCs` and
`lock.replay_smb3_specification_multi` need a second channel. With an ordinary user as well, smbd passes 175, and
Kyanite 161 of them: `compound.related4`, `related7` and `create.nulldacl` expect that permissions bind an owner, and
`session.reauth2` and `reauth3` that a client may log on again without a name.
"""


def write(smbd: report.Runs, kyanite: report.Runs, names: Sequence[str], path: Path = PAGE) -> None:
    missed = [name for name in names if _passed(smbd, name) and not _passed(kyanite, name)]
    parts = [
        _HEAD,
        report.table(smbd, kyanite, names),
        _OTHER_CONFIGURATIONS,
        "\n## What smbd passes and Kyanite does not\n",
        _listed({name: reason_for(name) or "not explained yet" for name in missed}),
        "\n\n## What Kyanite passes and smbd does not\n\n",
        ", ".join(f"`{name}`" for name in names if _passed(kyanite, name) and not _passed(smbd, name)),
        "\n\n## Suites that are not run\n",
        _listed(LEFT_OUT),
        "\n",
    ]
    path.write_text("".join(parts))


def _passed(runs: report.Runs, name: str) -> bool:
    return name in runs and runs[name].has_passed


def _listed(reasons: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {reason} |" for name, reason in reasons.items()]
    return "\n".join(["\n| what | why |", "| --- | --- |", *rows])
