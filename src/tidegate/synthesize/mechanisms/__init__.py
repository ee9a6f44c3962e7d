"""The models, by name: "forest/2" learns every table, and "forest/1" draws what an older ledger contains."""

from __future__ import annotations

import importlib
from typing import Any

from tidegate.errors import Unsupported

_HERE = "tidegate.synthesize.mechanisms.forest"
MODELS = {"forest/2": (f"{_HERE}.model", "Forest"), "forest/1": (f"{_HERE}.first", "Forest1")}


def model_for(name: str) -> Any:
    """Load the model of a name, which is not imported before."""
    if name not in MODELS:
        raise Unsupported(f'Unknown model: "{name}".', 'Use "forest/2", or omit `model`.')
    module, inside = MODELS[name]
    return getattr(importlib.import_module(module), inside)()
