"""The models, by name. One package or file each; none is imported before it is requested.

Other distributions add models through the entry-point group `tidegate.models`, under names with a version, "bppd/1". They
never replace a model of Tidegate.
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tidegate.errors import MissingExtra, Unsupported, did_you_mean

_HERE = "tidegate.synthesize.mechanisms"
MODELS = {
    "forest/1": (f"{_HERE}.forest.model", "Forest"),
    "sequential/1": (f"{_HERE}.parametric.sequential", "Sequential"),
    "copula/1": (f"{_HERE}.parametric.copula", "Copula"),
}
PUBLISHED = ("bppd/1", "smooth-histogram/1", "metropolis/1", "plug-in/1")  # in the distribution tidegate-papers


def model_for(name: str) -> Any:
    """Load the model of a name: with its version, or without it for the newest.

    Raises:
        MissingExtra: The model is in the distribution tidegate-papers, which is not installed.
        Unsupported: No installed model has this name.
    """
    if full := _full_name(name, MODELS):
        module, inside = MODELS[full]
        return getattr(importlib.import_module(module), inside)()
    others = _installed()
    if full := _full_name(name, others):
        return others[full].load()()
    if full := _full_name(name, PUBLISHED):
        raise MissingExtra(
            f'The model "{full}" needs the distribution tidegate-papers, which is not installed.',
            "Install it with: pip install tidegate-papers",
        )
    known = [*MODELS, *others, *PUBLISHED]
    raise Unsupported(
        f'Unknown model: "{name}".',
        did_you_mean(name, dict.fromkeys(["auto", *(full.partition("/")[0] for full in known), *known])),
    )


def is_installed(name: str) -> bool:
    """Return whether a model can be loaded."""
    return bool(_full_name(name, MODELS) or _full_name(name, _installed()))


def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="tidegate.models")}


def _full_name(name: str, names: Any) -> str:
    """Return the name with its version; the last listed version if it has none, and "" if there is no such model."""
    return name if name in names else {full.partition("/")[0]: full for full in names}.get(name, "")
