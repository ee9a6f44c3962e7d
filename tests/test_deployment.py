"""The files in deploy/: their rules, and the steps of the Dockerfile, executed one by one below a temporary folder."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from service.processes import free_port

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
PATIENCE = 90.0  # seconds until a started service is healthy
FOLDERS = ("/opt", "/wheels", "/var/lib/tidegate")  # of the image
ACCOUNT = "groupadd "  # begins the step that needs root: it creates the user
CLEAN = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "TIDEGATE"))
}


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile in order, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in text.splitlines() if line.strip()]


def only(name: str) -> str:
    (text,) = (text for kind, text in instructions() if kind == name)
    return text


def test_image_is_built_in_two_stages_from_locks_and_runs_unprivileged() -> None:
    steps = instructions()
    images = [text for name, text in steps if name == "FROM"]
    assert len(images) == 2
    assert all(re.fullmatch(r"python:3\.\d+-slim-[a-z]+( AS build)?", image) for image in images), "no moving tag"
    assert only("USER") == "10001:10001"
    names = [name for name, _ in steps]
    assert names.index("USER") < names.index("HEALTHCHECK") < names.index("CMD")
    assert "RUN" not in names[names.index("USER") :], "nothing is changed after the user is"
    installs = [text for name, text in steps if name == "RUN" and "pip install" in text]
    assert all("--require-hashes" in text or "--no-deps --no-index" in text for text in installs)
    assert {lock for text in installs for lock in re.findall(r"locks/\w+\.txt", text)} == {
        "locks/uv.txt",
        "locks/run.txt",
    }


def test_build_context_has_the_sources_and_no_data() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert lines[0] == "*", "everything is left out that is not listed"
    for needed in ("src", "papers/src", "papers/pyproject.toml", "pyproject.toml", "locks", "README.md", "LICENSE"):
        assert f"!{needed}" in lines
        assert (ROOT / needed).exists()
    assert not any(fnmatch(name, line[1:]) for name in (".git", ".venv", "tests") for line in lines if line[0] == "!")


def test_compose_has_two_services_a_database_and_a_proxy() -> None:
    content: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    services = content["services"]
    assert set(services) == {"gate1", "gate2", "database", "proxy"}
    for name in ("gate1", "gate2"):
        service = services[name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert "ports" not in service, "only the proxy is open"
        assert service["networks"] == ["inside"]
        assert service["environment"]["TIDEGATE_PUBLIC_URL"].startswith("https://")
        assert service["environment"]["TIDEGATE_LEDGER_FILE"] == "/run/secrets/ledger"
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert content["networks"]["inside"]["internal"]
    for kind in ("secrets", "networks", "volumes"):
        uses = {str(part).split(":")[0] for service in services.values() for part in service.get(kind, [])}
        assert {name for name in uses if not name.startswith((".", "/"))} == set(content[kind])
    for service in services.values():
        assert set(service.get("depends_on", [])) <= set(services)
        assert not any("PASSWORD" in name and "FILE" not in name for name in service.get("environment", {}))
    caddy = (DEPLOY / "Caddyfile").read_text("utf-8")
    assert "gate1:8480 gate2:8480" in caddy
    assert caddy.count("{") == caddy.count("}")


@pytest.mark.parametrize("adapted", [False, True])
def test_proxy_accepts_its_configuration(adapted: bool, tmp_path: Path) -> None:
    if not shutil.which("caddy"):
        pytest.skip("no caddy on this machine: the Caddyfile cannot be validated (apt install caddy)")
    file = tmp_path / "Caddyfile"
    text = (DEPLOY / "Caddyfile").read_text("utf-8")
    file.write_text(text.replace("health_uri", "health_address_of") if adapted else text)
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(file)]
    environment = {**CLEAN, "HOST": "gate.example.org", "HOME": str(tmp_path)}
    checked = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (checked.returncode == 0) is not adapted, checked.stderr[-2000:]


def test_nginx_accepts_the_sample_of_the_documentation(tmp_path: Path) -> None:
    (sample,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs/operations.md").read_text("utf-8"), re.DOTALL)
    for needed in ("Host $http_host", "X-Forwarded-For $remote_addr", "proxy_buffering off", "client_max_body_size 2g"):
        assert needed in sample
    if not shutil.which("nginx"):
        pytest.skip("no nginx on this machine: the sample cannot be checked (apt install nginx)")
    file = tmp_path / "nginx.conf"
    places = f"pid {tmp_path}/pid;\nerror_log {tmp_path}/log;\nevents {{}}\n"
    file.write_text(f"{places}http {{ access_log off; server {{ listen 127.0.0.1:{free_port()}; {sample} }} }}\n")
    command = ["nginx", "-t", "-e", f"{tmp_path}/log", "-c", str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_registry_of_sources_is_in_the_folder_of_the_state() -> None:
    image = dict(pair.split("=", 1) for pair in shlex.split(only("ENV")))
    assert Path(image["TIDEGATE_REGISTRY"]).parent == Path(image["TIDEGATE_FOLDER"])
    unit = (DEPLOY / "tidegate.service").read_text("utf-8")
    assert "TIDEGATE_FOLDER=%S/tidegate TIDEGATE_REGISTRY=%S/tidegate/sources.registry" in unit


def test_secrets_of_the_unit_are_credentials(tmp_path: Path) -> None:
    text = (DEPLOY / "tidegate.service").read_text("utf-8")
    shown = re.findall(r"^#(LoadCredential=(\w+):\S+)\n#(Environment=TIDEGATE_\w+_FILE=%d/(\w+))$", text, re.MULTILINE)
    assert [(name, used) for _, name, _, used in shown] == [("ledger", "ledger"), ("oidc", "oidc")]
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze on this machine: the unit cannot be verified (apt install systemd)")
    unit = tmp_path / "tidegate.service"
    enabled = text.replace("#LoadCredential", "LoadCredential").replace("#Environment", "Environment")
    unit.write_text(enabled.replace("/opt/tidegate/bin/tidegate", shutil.which("true") or ""))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, [line for line in checked.stderr.splitlines() if "tidegate.service" in line]) == (0, [])


def test_unit_is_valid_and_hardened(tmp_path: Path) -> None:
    text = (DEPLOY / "tidegate.service").read_text("utf-8")
    for line in (
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "StateDirectory=tidegate",
        "UMask=0077",
        "DynamicUser=yes",
    ):
        assert line in text.splitlines()
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze on this machine: the unit cannot be verified (apt install systemd)")
    unit = tmp_path / "tidegate.service"
    unit.write_text(text.replace("/opt/tidegate/bin/tidegate", shutil.which("true") or ""))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, [line for line in checked.stderr.splitlines() if "tidegate.service" in line]) == (0, [])
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(unit)], capture_output=True, check=False
    )
    assert rated.returncode == 0, rated.stdout.decode()


@pytest.mark.long
def test_steps_of_the_image_run_and_the_service_becomes_healthy(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for line in (ROOT / ".dockerignore").read_text("utf-8").split():
        path = ROOT / line[1:]
        if line[0] == "!" and path.exists():
            copy = shutil.copytree if path.is_dir() else shutil.copy
            (source / line[1:]).parent.mkdir(parents=True, exist_ok=True)
            copy(path, source / line[1:])
    ran = 0
    for name, text in instructions():
        if name == "RUN" and not text.startswith(ACCOUNT):
            run(inside(tmp_path, text), source)
            ran += 1
    assert ran == 5
    environment = dict(pair.split("=", 1) for pair in shlex.split(inside(tmp_path, only("ENV"))))
    path = environment["PATH"].replace("$PATH", CLEAN["PATH"])
    state = tmp_path / "var/lib/tidegate"
    state.mkdir(parents=True, mode=0o700)
    subprocess.run(["chmod", "-R", "a-w", str(tmp_path / "opt")], check=True)  # the image is read-only
    more = {"TIDEGATE_PORT": str(free_port()), "TIDEGATE_PUBLIC_URL": "https://gate.example.org"}
    started = {**CLEAN, **environment, **more, "PATH": path}
    health = yaml.safe_load(only("HEALTHCHECK").partition("CMD ")[2])
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(yaml.safe_load(only("CMD")), cwd=state, env=started, stdout=log, stderr=log)
    try:
        until = time.monotonic() + PATIENCE
        while subprocess.run(health, env=started, capture_output=True, check=False).returncode:
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until, (tmp_path / "log").read_text()
            time.sleep(0.2)
        assert "Sign in as the owner with this link" in (tmp_path / "log").read_text(), "while the service runs"
    finally:
        process.terminate()
        process.wait(30)
        subprocess.run(["chmod", "-R", "u+w", str(tmp_path / "opt")], check=True)
    assert subprocess.run(health, env=started, capture_output=True, check=False).returncode, "it is down now"
    refused = subprocess.run(
        yaml.safe_load(only("CMD")),
        cwd=state,
        env={**started, "TIDEGATE_PUBLIC_URL": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "--public-url" in refused.stderr


def inside(folder: Path, text: str) -> str:
    """Return a step with the folders of the image below another one, and with this interpreter."""
    for name in FOLDERS:
        text = re.sub(rf"(?<![\w.]){name}\b", f"{folder}{name}", text)
    return re.sub(r"(^|&& )python ", rf"\1{sys.executable} ", text.replace("--no-cache ", ""))


def run(step: str, folder: Path) -> None:
    done = subprocess.run(
        ["sh", "-euc", step], cwd=folder, env=CLEAN, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{step}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
