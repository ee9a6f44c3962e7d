"""warm: compile the kernels in advance, so that the first large request does not wait."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from time import perf_counter

from tidegate.cli.output import JSON, counted, emit, say, stop_listening


def warm(json: bool = JSON) -> None:
    """Compile the loops of releases and synthetic tables, and store them in the user's cache folder.

    Small work never waits for the compiler, with or without this command. It needs the extras release and synthesize.
    """
    from tidegate.extras import cache_folder

    parts: dict[str, Callable[[], None]] = {"release": _compile_release, "synthesize": _compile_synthesis}
    stop_listening()  # what is compiled here needs a ledger, which nobody has to know
    begin = perf_counter()
    with counted("compiling") as progress:
        for done, compile_part in enumerate(parts.values()):
            progress(done, len(parts))
            compile_part()
        progress(len(parts), len(parts))
    seconds = perf_counter() - begin
    if json:
        return emit({"folder": str(cache_folder()), "parts": list(parts), "seconds": round(seconds, 1)})
    return say(f"Compiled {' and '.join(parts)} in {seconds:,.0f} s: {cache_folder()}")


def _compile_release() -> None:
    import numpy as np

    from tidegate.demo.soldiers import BASELINE, SHARES, concealment
    from tidegate.kernels import compiled_only
    from tidegate.release.gate import Gate
    from tidegate.release.plan import make_plan

    with compiled_only():
        gate = Gate(make_plan(concealment(), [*map(Fraction, BASELINE)], [*map(Fraction, SHARES)]))
        gate.decide(np.zeros(2, np.int64), np.arange(2))
        gate.admissible()
        gate.withdraw(1, 0)
        gate.enqueue(2, 0)
        gate.grant(0)


def _compile_synthesis() -> None:
    from tidegate import demo
    from tidegate.kernels import compiled_only
    from tidegate.session import open_session

    with tempfile.TemporaryDirectory() as folder:
        demo.write(Path(folder))
        people = demo.policies(Path(folder))["people"]
        with (
            compiled_only(),
            open_session(people, ledger=str(Path(folder) / "warm.ledger"), new_account="warm") as session,
        ):
            session.synthesize(epsilon="1", progress=False)
