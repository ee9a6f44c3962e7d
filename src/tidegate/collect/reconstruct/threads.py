"""One thread for many small products: a second one mostly waits, and on a busy machine it waits long."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _controller() -> ThreadpoolController:  # finding the libraries takes longer than a small fit
    return ThreadpoolController()


def one_thread(work: Callable[P, T]) -> Callable[P, T]:
    """The same work, with linear algebra on one thread."""

    @wraps(work)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return work(*args, **kwargs)

    return limited
