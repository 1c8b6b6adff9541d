"""The commands of docs/backup.md, in their order."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.server.backup.test_backup import container_of, serving

GUIDE = Path(__file__).parents[3] / "docs" / "backup.md"


def test_the_commands_of_the_guide(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh run\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) >= 5
    with serving(tmp_path / "kyanite") as server, container_of(server) as container:
        container.upload_blob("blob", bytes(100_000))
        for line in lines:
            program, *arguments = shlex.split(line.replace("/srv", str(tmp_path)))
            assert program == "kyanite"
            command = [sys.executable, "-m", "kyanite.server.cli", *arguments]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert (ended.returncode, ended.stderr) == (0, ""), line
