"""What the console needs is in the wheel, and nothing of it is imported before the first page is asked for."""

import json
import subprocess
import sys
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "kyanite" / "services" / "console"


def test_templates_script_and_stylesheet_are_in_the_wheel() -> None:
    packed = {each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()}
    needed = [*FOLDER.glob("templates/*.html"), *FOLDER.glob("static/*")]
    assert len(needed) > 15
    assert {str(path.relative_to(ROOT / "src")) for path in needed} <= packed


def test_a_worker_imports_no_console_at_its_start() -> None:
    program = "import sys, json, kyanite.server.processes.worker; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, timeout=60
    ).stdout
    modules = json.loads(output)
    assert "kyanite.server.console.handler" in modules
    assert not [name for name in modules if name.startswith(("jinja2", "kyanite.services.console"))]
