"""The models, by name. One package or file each; none is imported before it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from tidegate.errors import Unsupported, did_you_mean

_HERE = "tidegate.synthesize.mechanisms"
MODELS = {
    "forest/1": (f"{_HERE}.forest.model", "Forest"),
    "sequential/1": (f"{_HERE}.parametric.sequential", "Sequential"),
    "copula/1": (f"{_HERE}.parametric.copula", "Copula"),
    "bppd/1": (f"{_HERE}.baselines.bppd", "Bppd"),
    "smooth-histogram/1": (f"{_HERE}.baselines.smooth_histogram", "SmoothHistogram"),
    "metropolis/1": (f"{_HERE}.parametric.metropolis", "Metropolis"),  # asymptotic: refused by every promise
    "plug-in/1": (f"{_HERE}.baselines.plug_in", "PlugIn"),  # not private at all: likewise
}


def model_for(name: str) -> Any:
    """The model of a name: with its version, or without it for the newest."""
    known = {**{full.partition("/")[0]: full for full in MODELS}, **{full: full for full in MODELS}}
    if name not in known:
        raise Unsupported(f'no model is called "{name}".', did_you_mean(name, ["auto", *known]))
    module, inside = MODELS[known[name]]
    return getattr(importlib.import_module(module), inside)()
