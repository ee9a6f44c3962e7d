"""Optional packages: which extra installs which of them, and one sentence where one is missing.

A module that needs an optional package imports it under `extra`, as its last import:

    with extra("release", "Releasing records"):
        from numba import njit

The type checker still sees the import, and the message is the same whichever way leads to the module. A package of
ours whose every module needs an extra calls `require` in its `__init__.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

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


def require(name: str, purpose: str) -> None:
    """Check that every package of an extra is installed, without importing any.

    Raises:
        MissingExtra: One of them is not.
    """
    with extra(name, purpose):
        for package in EXTRAS[name]:
            if package not in ACCELERATORS and find_spec(package) is None:
                raise ModuleNotFoundError(f"No module named {package!r}", name=package)
