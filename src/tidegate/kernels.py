"""Kernels: loops that are compiled by numba, and run interpreted while that is not worth the wait.

Compiling the decision loop of released records takes 20 s of processor time, and importing the compiler 0.4 s. So a kernel
runs as plain Python while its work is small. Once small work adds up, the compiled form is built in the background. Large
work waits for it. Both forms give identical results: they are the same source, and use `math` for functions of reals,
because NumPy's own differ from the compiler's in the last digit. tests/test_kernels.py compares them.

Compiled kernels are stored in `cache_folder()`, by version; numba compares the content of source files, so reinstalling the
same version at the same path finds them. `tidegate warm` fills the folder.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from time import perf_counter
from typing import Any

import numpy as np

from tidegate.extras import cache_folder, extra

LOG = logging.getLogger("tidegate.kernels")
LARGE = 1_000_000  # microseconds of plain Python: larger work waits for the compiler
PATIENCE = 2.0  # seconds of plain Python in a process, after which kernels are compiled in the background
KERNELS: list[Kernel] = []

_turn = threading.Lock()
_plain = threading.local()  # .depth: plain Python calls plain Python
_spent = [0.0]  # seconds of plain Python in this process
_forced = [False]  # compile whatever is called


def load_compiler() -> Any:
    """Return numba, which stores what it compiles in `cache_folder()`."""
    with extra("release", "Compiling kernels"):
        import numba
    return numba


class Kernel:
    """A function that is compiled when that is worth it. Compiled kernels can call each other."""

    def __init__(
        self,
        function: Callable[..., Any],
        work: Callable[..., int] | None,
        plain: Callable[..., Any] | None,
        options: dict[str, Any],
    ) -> None:
        self.py_func, self.plain, self._work, self._options = function, plain or function, work, options
        self._dispatcher: Any = None
        self._ready: set[Hashable] = set()
        self._pending: set[Hashable] = set()
        update_wrapper(self, function)
        KERNELS.append(self)

    @property
    def dispatcher(self) -> Any:
        """The compiler's form of the function."""
        if self._dispatcher is None:
            njit = load_compiler().njit
            with _turn:
                if self._dispatcher is None:
                    self._dispatcher = njit(cache=True, **self._options)(self.py_func)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What the compiler sees where another kernel calls this one."""
        return self.dispatcher._numba_type_

    def __call__(self, *args: Any) -> Any:
        if getattr(_plain, "depth", 0):
            return self.plain(*args)
        form = _form(args)
        if form in self._ready:
            return self.dispatcher(*args)
        if _forced[0]:
            return self.compile(*args)
        if self._work is not None and self._work(*args) > LARGE:
            self._note()
            return self.compile(*args)
        if _spent[0] > PATIENCE:
            self._build(form, args)
        return self._interpret(args)

    def compile(self, *args: Any) -> Any:
        """Run the compiled form, after compiling it for these types if that has not happened yet."""
        result = self.dispatcher(*args)
        self._ready.add(_form(args))
        return result

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        _plain.depth = 1
        begin = perf_counter()
        try:
            with np.errstate(over="ignore"):  # compiled integers wrap without a warning
                return self.plain(*args)
        finally:
            _spent[0] += perf_counter() - begin
            _plain.depth = 0

    def _build(self, form: Hashable, args: tuple[Any, ...]) -> None:
        """Compile for these types in a thread, once."""
        with _turn:
            if form in self._pending:
                return
            self._pending.add(form)

        def build() -> None:
            self.dispatcher.compile(tuple(load_compiler().typeof(arg) for arg in args))
            self._ready.add(form)

        threading.Thread(target=build, name=f"compile {self.__name__}", daemon=True).start()  # type: ignore[attr-defined]

    def _note(self) -> None:
        """Log once that work waits for the compiler."""
        if not _noted and not _is_cached():
            _noted.append(True)
            LOG.info("Compiling loops for large tables. This is needed once; tidegate warm does it in advance.")


_noted: list[bool] = []


def _is_cached() -> bool:
    return any(cache_folder().rglob("*.nbi"))


def kernel(
    *, work: Callable[..., int] | None = None, plain: Callable[..., Any] | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that makes a function a kernel.

    Args:
        work: The number of steps of a call, from its arguments. Without it, a call is small.
        plain: The form that runs until the compiled one is ready, with identical results; by default the function itself.
        options: Options of `numba.njit`; kernels are always cached.
    """
    return lambda function: Kernel(function, work, plain, options)


def _form(args: tuple[Any, ...]) -> Hashable:
    """Return what the compiler distinguishes: types, and of arrays the dimensions, the order and whether they can be written."""
    return tuple(_form_of(arg) for arg in args)


def _form_of(arg: Any) -> Any:
    if isinstance(arg, tuple):
        return type(arg), tuple(_form_of(part) for part in arg)
    dtype = getattr(arg, "dtype", None)
    if dtype is None or not hasattr(arg, "flags") or not arg.ndim:
        return type(arg)
    return dtype, arg.ndim, arg.flags.c_contiguous, arg.flags.f_contiguous, arg.flags.writeable


@contextmanager
def compiled_only() -> Iterator[None]:
    """Compile every kernel that this block calls, however small its work. For `tidegate warm` and for tests."""
    before, _forced[0] = _forced[0], True
    try:
        yield
    finally:
        _forced[0] = before


def wait_for_kernels() -> None:
    """Wait until no kernel is being compiled in the background."""
    for thread in threading.enumerate():
        if thread.name.startswith("compile "):
            thread.join()
