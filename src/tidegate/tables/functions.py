"""Functions of the engines themselves, by their own names, for Ibis expressions.

Ibis never copies such a function into another query: an expression around one is computed once.
"""

from __future__ import annotations

import inspect
from typing import Any

import ibis


def _builtin(name: str, *kinds: str, returns: str) -> Any:
    """Return an engine's function of some types."""

    def function(*arguments: Any) -> Any: ...

    parameters = [inspect.Parameter(f"argument_{n}", inspect.Parameter.POSITIONAL_ONLY) for n in range(len(kinds))]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return ibis.udf.scalar.builtin(function, name=name, signature=(kinds, returns))


md5 = _builtin("md5", "string", returns="string")
md5_of_bytes = _builtin("md5", "binary", returns="string")
encode = _builtin("encode", "string", returns="binary")
convert_to = _builtin("convert_to", "string", "string", returns="binary")
unhex = _builtin("unhex", "string", returns="binary")
decode = _builtin("decode", "string", "string", returns="binary")
rtrim = _builtin("rtrim", "string", returns="string")
nullif = _builtin("nullif", "string", "string", returns="string")
nullif_code = _builtin("nullif", "int64", "int64", returns="int64")
glob = _builtin("glob", "string", "string", returns="boolean")
round = _builtin("round", "decimal", "int64", returns="decimal")
date_diff = _builtin("date_diff", "string", "date", "date", returns="int64")
epoch_us, time_us = (_builtin("epoch_us", kind, returns="int64") for kind in ("timestamp", "time"))
make_date = _builtin("make_date", "int32", returns="date")
date_mi = _builtin("date_mi", "date", "date", returns="int32")
date_pli = _builtin("date_pli", "date", "int32", returns="date")
epoch, time_epoch = (_builtin("date_part", "string", kind, returns="float64") for kind in ("timestamp", "time"))
unix_date = _builtin("unix_date", "date", returns="int32")
unix_seconds = _builtin("unix_seconds", "timestamp", returns="int64")
date_of_unix = _builtin("date_from_unix_date", "int32", returns="date")
