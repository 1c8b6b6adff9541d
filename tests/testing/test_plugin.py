"""The pytest plugin: found by its entry point, free of charge until it is used, and of use in a project of a user."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from kyanite.testing import plugin
from tests.server_process import eventually

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "examples" / "testing-python"

IMPORTED = """
import sys
import pytest

class AtTheEnd:
    def pytest_sessionfinish(self, session):
        assert session.config.pluginmanager.has_plugin("kyanite")
        ours = sorted(name for name in sys.modules if name.startswith(("kyanite", "azure", "msgspec", "uvloop")))
        print("imported:", ours)

sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]], plugins=[AtTheEnd()]))
"""


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    without = ("PYTEST_", "KYANITE_", "COV_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(without)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )


def test_the_plugin_has_an_entry_point() -> None:
    (found,) = entry_points(group="pytest11", name="kyanite")
    assert found.value == "kyanite.testing.plugin"


def test_a_session_that_does_not_use_it_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    done = run("-c", IMPORTED, str(tmp_path), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "imported: ['kyanite', 'kyanite.testing', 'kyanite.testing.plugin']" in done.stdout


def test_all_fixtures_have_the_prefix() -> None:
    kind = type(plugin.kyanite_server)
    fixtures = [name for name, value in vars(plugin).items() if isinstance(value, kind)]
    assert len(fixtures) > 5
    assert all(name.startswith("kyanite_") for name in fixtures)


def test_the_sample_project_passes(record_property: Callable[[str, object], None]) -> None:
    """Its duration is reported, not asserted: this machine may be busy."""
    done = run("-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "--durations=0", ".", folder=SAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    print(done.stdout)
    record_property("summary", done.stdout.splitlines()[-1])


def test_a_session_that_uses_it_leaves_no_server_behind(tmp_path: Path) -> None:
    (tmp_path / "test_used.py").write_text(
        "def test_used(kyanite_server):\n    print('pid', kyanite_server._process.pid)\n"
    )
    done = run("-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", str(tmp_path), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    pid = int(done.stdout.partition("pid ")[2].split()[0])
    eventually(lambda: not Path(f"/proc/{pid}").exists())
