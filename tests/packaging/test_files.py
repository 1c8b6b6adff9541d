"""The files that others start the server by name options, ports and metrics that exist, and what can be checked of
them is: there is neither a container runtime nor a cluster where this runs (docs/packaging.md).
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml
from documentation import metrics, options
from documentation.pages import ROOT

from kyanite.server.service_table import SERVICES
from tests.docs.configuration import check_configuration
from tests.server_process import ServerProcess

DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
SERVICE_PORTS = {row.default_port for row in SERVICES.values() if row.is_built}
ADMIN_PORT = 10009
CONSOLE_PORT = 10010
VARIABLES = options.all_variables() | {"KYANITE_COMPILE"}
PACKAGING = ROOT / "packaging"


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)


@pytest.mark.parametrize(
    "path",
    ["Dockerfile", "compose.yaml", "packaging/compose.scale.yaml", "packaging/kubernetes/kyanite.yaml"],
)
def test_variables_exist(path: str) -> None:
    named = set(re.findall(r"\bKYANITE_[A-Z_]+\b", (ROOT / path).read_text()))
    assert named
    assert named <= VARIABLES


# --- The image


def test_the_image_serves_as_a_user_without_rights_and_exposes_what_is_served() -> None:
    assert instructions("USER") == ["10000:10000"]
    assert {int(port) for port in instructions("EXPOSE")[0].split()} == SERVICE_PORTS | {
        ADMIN_PORT,
        CONSOLE_PORT,
    }
    assert f"KYANITE_ADMIN_PORT={ADMIN_PORT}" in DOCKERFILE
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["kyanite"]
    assert len(instructions("FROM")) == 2
    assert "gcc" not in DOCKERFILE.split("FROM")[2]


def test_the_builder_gets_what_the_wheel_is_made_of_and_no_more() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    given = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert "*" in lines
    assert given == {"src", "packaging", "pyproject.toml", "README.md", "LICENSE"}
    assert all((ROOT / name).exists() for name in given)


def test_the_health_check_tells_a_healthy_server_from_none() -> None:
    found = re.search(r"HEALTHCHECK .* CMD (\[.*\])", DOCKERFILE)
    assert found is not None
    program, *arguments = json.loads(found[1])
    assert program == "python"

    def check(port: int) -> int:
        words = [word.replace(str(ADMIN_PORT), str(port)) for word in arguments]
        return subprocess.run(
            [sys.executable, *words], capture_output=True, check=False, timeout=30
        ).returncode

    with ServerProcess("--in-memory", "--admin-port", "0") as server:
        port = urlsplit(server.endpoints["admin"]).port or 0
        assert check(port) == 0
    assert check(port) != 0


def test_compose_publishes_the_development_account_on_loopback_only() -> None:
    document = yaml.safe_load((ROOT / "compose.yaml").read_text())
    service = document["services"]["kyanite"]
    assert service["environment"] == {"KYANITE_ALLOW_DEVELOPMENT_KEY": "1", "KYANITE_CONSOLE_HOST": "0.0.0.0"}
    published: set[int] = set()
    for text in service["ports"]:
        address, outside, inside = text.split(":")
        assert (address, outside) == ("127.0.0.1", inside)
        first, _, last = inside.partition("-")
        published.update(range(int(first), int(last or first) + 1))
    assert published == SERVICE_PORTS | {ADMIN_PORT, CONSOLE_PORT}
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert {volume.split(":")[0] for volume in service["volumes"]} == set(document["volumes"])


# --- systemd


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """With a program that exists in place of the installed one, which systemd looks for."""
    program = shutil.which("systemd-analyze")
    assert program is not None, "scripts/debian systemd installs it"
    text = (PACKAGING / "systemd" / "kyanite.service").read_text()
    unit = tmp_path / "kyanite.service"
    unit.write_text(text.replace("/opt/kyanite/bin/kyanite", sys.executable))
    verified = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True, check=False)
    own = [line for line in (verified.stdout + verified.stderr).splitlines() if "kyanite" in line]
    assert (verified.returncode, own) == (0, [])
    command = [program, "security", "--offline=yes", "--threshold=20", str(unit)]
    judged = subprocess.run(command, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout


def test_the_unit_names_a_command_that_exists_and_its_configuration_is_accepted(tmp_path: Path) -> None:
    text = (PACKAGING / "systemd" / "kyanite.service").read_text()
    found = re.search(r"^ExecStart=/opt/kyanite/bin/kyanite (\w+) (.*)$", text, re.MULTILINE)
    assert found is not None
    assert found[1] == "serve"
    assert set(re.findall(r"--[a-z-]+", found[2])) <= options.all_options()
    check_configuration((PACKAGING / "systemd" / "kyanite.toml").read_text(), tmp_path)


# --- Kubernetes


def objects() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((PACKAGING / "kubernetes" / "kyanite.yaml").read_text()))


def test_kubernetes_knows_every_field() -> None:
    for each in objects():
        kubernetes_validate.validate(each, "1.31", strict=True)
    wrong = {**objects()[0], "polish": True}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.31", strict=True)


def test_the_pod_is_the_image_and_its_ports_are_those_of_the_server() -> None:
    service, stateful_set = objects()
    pod = stateful_set["spec"]["template"]["spec"]
    [container] = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {row.name: row.default_port for row in SERVICES.values() if row.is_built} | {
        "admin": ADMIN_PORT
    }
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports) - {"admin"}
    assert (
        f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
        == instructions("USER")[0]
    )
    claims = {claim["metadata"]["name"] for claim in stateful_set["spec"]["volumeClaimTemplates"]}
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == claims | volumes


# --- Grafana


def test_the_dashboard_queries_metrics_that_exist() -> None:
    dashboard = json.loads((PACKAGING / "grafana" / "kyanite.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    named = {name for query in queries for name in re.findall(r"\bkyanite_\w+", query)}
    assert named <= metrics.names()
    on_dashboard = {
        re.sub(r"_(bucket|sum|count)$", "", name) if "seconds" in name else name for name in named
    }
    assert {
        metric for metric in metrics.names() if not re.search(r"_(bucket|sum|count)$", metric)
    } == on_dashboard
