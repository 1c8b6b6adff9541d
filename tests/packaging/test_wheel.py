"""What users install: the source archive, the wheel that is made of it, and that wheel in an empty environment."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from documentation.pages import ROOT

from tests.packaging.environment import clean_environment, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOR_USERS = sorted(set(PROJECT["optional-dependencies"]) - {"dev", "bench"})
BACKEND = (
    "import sys; sys.path.insert(0, 'packaging'); import backend; print(backend.build_sdist(sys.argv[1]))"
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    printed = run(sys.executable, "-c", BACKEND, str(folder), folder=ROOT)
    return folder / printed.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of the archive and of nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(archive),
        folder=folder,
    )
    [wheel] = folder.glob("*.whl")
    return wheel


def package_files() -> set[str]:
    """What git has below the package: modules, and data beside them."""
    listed = subprocess.run(
        ["git", "ls-files", "src/kyanite"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.removeprefix("src/") for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def test_the_archive_has_what_the_wheel_is_made_of(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "packaging/backend.py",
        "packaging/compiled.toml",
    } <= names
    assert {f"src/{name}" for name in package_files()} <= names
    assert not [name for name in names if name.startswith((".venv", ".clients", ".bench/"))]


def test_the_wheel_has_the_package_with_its_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    assert wheel.name.endswith("-py3-none-any.whl")
    assert package_files() <= names
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"kyanite"}


def test_the_wheel_has_the_command_and_the_plugin_of_pytest(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        [name] = [name for name in opened.namelist() if name.endswith(".dist-info/entry_points.txt")]
        text = opened.read(name).decode()
    assert "[console_scripts]\nkyanite = kyanite.server.cli:main\n" in text
    assert "[pytest11]\nkyanite = kyanite.testing.plugin\n" in text


def test_the_wheel_installs_with_every_extra_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"), folder=tmp_path)
    program = tmp_path / "venv" / "bin"
    assert FOR_USERS
    pip = (sys.executable, "-m", "pip", "--python", str(program / "python"))
    run(*pip, "install", "--quiet", f"{wheel}[{','.join(FOR_USERS)}]", folder=tmp_path)
    assert "No broken requirements" in run(*pip, "check", folder=tmp_path)
    version = run(str(program / "kyanite"), "--version", folder=tmp_path)
    assert version == f"kyanite, version {PROJECT['version']} (interpreted)\n"
    extras = "import asyncpg, obstore, kyanite.engine.postgres, kyanite.extents.s3, kyanite; print(kyanite.__file__)"
    printed = run(str(program / "python"), "-c", extras, folder=tmp_path, environment=clean_environment())
    assert printed.startswith(str(tmp_path))
