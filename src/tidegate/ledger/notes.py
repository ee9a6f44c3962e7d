"""Storage of checkpoints outside of the ledger: a file, any fsspec address, or an HTTP endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tidegate.errors import TidegateError
from tidegate.extras import extra
from tidegate.ledger.checkpoint import MOST_BYTES
from tidegate.ledger.file import replace_file

SECONDS = 5.0  # until a witness counts as unreachable


class Unreachable(Exception):
    """A witness did not answer. The text is the reason, without any value."""


def read(address: str) -> str | None:
    """Return the note at an address; None if there is none yet. Raises `Unreachable`."""
    problem = ""
    try:
        content = _read(address)
        if content is not None and len(content) > MOST_BYTES:
            raise ValueError("too large")
        return None if content is None else content.decode()
    except TidegateError:
        raise
    except Exception as error:  # an address of any kind fails in its own way
        problem = _reason(error)
    raise Unreachable(problem)


def write(address: str, note: str) -> None:
    """Replace the note at an address. Raises `Unreachable`."""
    problem = ""
    try:
        return _write(address, note.encode())
    except TidegateError:
        raise
    except Exception as error:
        problem = _reason(error)
    raise Unreachable(problem)


def shown(address: str) -> str:
    """Return an address without user, password and options."""
    if "://" not in address:
        return address
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def absolute(address: str, folder: Path) -> str:
    """Return an address that does not depend on the current folder."""
    return address if "://" in address else str((folder / Path(address).expanduser()).absolute())


def _read(address: str) -> bytes | None:
    if address.startswith(("http://", "https://")):
        import httpx

        response = httpx.get(address, timeout=SECONDS)
        return None if response.status_code in (404, 410) else response.raise_for_status().content
    try:
        if "://" not in address:
            if not Path(address).parent.is_dir():  # a disk that is not mounted is not an empty witness
                raise NotADirectoryError(0, "its folder does not exist")
            return Path(address).read_bytes()
        files, path = _files(address)
        return bytes(files.cat_file(path))
    except FileNotFoundError:
        return None


def _write(address: str, content: bytes) -> None:
    if address.startswith(("http://", "https://")):
        import httpx

        headers = {"Content-Type": "text/plain; charset=utf-8"}
        httpx.put(address, content=content, timeout=SECONDS, headers=headers).raise_for_status()
    elif "://" not in address:
        replace_file(Path(address), content)
    else:
        files, path = _files(address)
        files.pipe_file(path, content)


def _files(address: str) -> tuple[Any, str]:
    with extra("witness", "A witness at this address"):
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

    files, path = url_to_fs(address)
    return files, path


def _reason(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"status {status}" if status else getattr(error, "strerror", None) or type(error).__name__
