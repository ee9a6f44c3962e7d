"""Optional packages: which extra installs which of them, and one sentence where one is missing.

A module that needs an optional package imports it under `extra`, as its last import:

    with extra("release", "Releasing records"):
        from numba import njit

The type checker still sees the import, and the message is the same whichever way leads to the module. A package of
ours whose every module needs an extra calls `require` in its `__init__.py`.

Packages that load slowly are imported when they are first used, so that a command pays only for what it needs:

    if TYPE_CHECKING:
        import pyarrow as pa
    else:
        pa = late("pyarrow")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tidegate.errors import MissingExtra

EXTRAS: dict[str, tuple[str, ...]] = {
    "release": ("numba", "scipy"),
    "collect": ("numba", "scipy", "fsspec", "threadpoolctl", "cryptography", "segno"),
    "synthesize": ("numba", "scipy", "joblib"),
    "audit": ("numba", "scipy", "fsspec", "threadpoolctl", "cryptography", "segno", "joblib"),
    "service": ("fastapi", "starlette", "uvicorn", "uvloop", "httptools", "prometheus_client"),
    "postgres": ("psycopg",),
    "spark": ("pyspark",),
    "sklearn": ("sklearn",),
    "polars": ("polars",),
    "witness": ("cryptography", "fsspec"),
    "oidc": ("authlib", "joserfc", "httpx2"),
}
ACCELERATORS = ("uvloop", "httptools")  # the service works without them, only slower
OPTIONAL = frozenset(package for packages in EXTRAS.values() for package in packages)


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Turn a missing optional package into an error that names the command that installs it.

    Args:
        name: The extra that provides the package.
        purpose: What needs it, as the subject of a sentence: "Releasing records".

    Raises:
        MissingExtra: A package of an extra is not installed.
    """
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))  # read when numba is imported
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in OPTIONAL:
            raise
    else:
        return
    raise MissingExtra(
        f"{purpose} needs {package}, which is not installed.", f"Install it with: pip install 'tidegate[{name}]'"
    )


def cache_folder() -> Path:
    """Return the folder of compiled kernels: NUMBA_CACHE_DIR, or one of this version in the user's cache folder."""
    from tidegate import __version__

    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tidegate" / f"kernels-{__version__}"


def require(name: str, purpose: str) -> None:
    """Check that every package of an extra is installed, without importing any.

    Raises:
        MissingExtra: One of them is not.
    """
    with extra(name, purpose):
        for package in EXTRAS[name]:
            if package not in ACCELERATORS and find_spec(package) is None:
                raise ModuleNotFoundError(f"No module named {package!r}", name=package)


class _LateModule:
    """A module that is imported when an attribute of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def late(name: str) -> Any:
    """Return a module that is imported when an attribute of it is first used."""
    return _LateModule(name)


def late_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`: it imports a public name from its module when the name is first used.

    Args:
        package: The package's `__name__`.
        homes: The module of each name, without the package.
    """

    def get_name(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return get_name
