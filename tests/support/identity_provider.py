"""A real OpenID Connect provider on loopback: oidc-provider, run by node. It is installed once, with the versions of its lock file."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

SOURCE = Path(__file__).parent / "provider"
SECRET = "provider-secret-7f31"
CLIENT = "tidegate"


@dataclass
class IdentityProvider:
    """A running provider. `set` changes its users, keys and faults."""

    issuer: str
    process: subprocess.Popen[bytes]

    def set(self, **state: Any) -> None:
        httpx.post(f"{self.issuer}/test/state", json=state).raise_for_status()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)


def installed_provider() -> Path:
    """Return the folder of the installed provider; tests are skipped with a message where it cannot be installed."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("no node on this machine: the OpenID Connect provider cannot be run (apt install nodejs npm)")
    lock = (SOURCE / "package-lock.json").read_bytes()
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidegate"
    folder = base / f"provider-{hashlib.sha256(lock).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(SOURCE / name, folder / name)
            command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
            if done.returncode:
                pytest.skip("the OpenID Connect provider cannot be installed here: npm ci failed")
            (folder / "complete").touch()
        shutil.copy(SOURCE / "provider.mjs", folder / "provider.mjs")
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def run_provider(address: str) -> Iterator[IdentityProvider]:
    """Run a provider whose only client is the service at an address."""
    folder, port = installed_provider(), free_port()
    arguments = [str(port), f"{address}/console/sign-in/oidc/callback", f"{address}/console/sign-in"]
    command = ["node", "provider.mjs", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == b"ready":
            break
    provider = IdentityProvider(f"http://localhost:{port}", process)
    try:
        yield provider
    finally:
        provider.stop()
        process.stdout.close()
