"""Sphinx configuration: the documentation is built from the root of the repository.

``make docs`` builds the pages under ``docs/`` and ``papers/docs/``, the contributor guide, the security policy and the
changelog. Because the repository itself is the source folder, every relative link means the same in the repository and
on the site, and no page is copied. Code blocks follow ``_ext/blocks.py``; ``_ext/commands.py`` writes the command
reference; the Python reference under ``docs/reference/api`` comes from docstrings.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import tidegate

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))
HIDDEN_COLON = "\N{MODIFIER LETTER COLON}"

project = "Tidegate"
author = "The Tidegate authors"
copyright = "2026, The Tidegate authors"
version = release = tidegate.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "papers/docs/**.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in ("docs", "papers"))

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "_ext.blocks",
    "_ext.commands",
    "_ext.sql",
]

myst_heading_anchors = 4  # links such as answer.md#what-can-be-asked use the same anchors as the repository's viewer
default_role = "code"  # docstrings quote names with single backticks

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
maximum_signature_line_length = 100
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Guarantee", "Needs", "Reference"]

html_theme = "furo"
html_title = "Tidegate"
html_show_sphinx = False
smartquotes = False  # help texts name options such as --data
html_copy_source = False
html_extra_path = ["_site"]
highlight_language = "text"


def setup(app: Any) -> None:
    """Show what readers need: no module docstrings but the tree of errors, plain defaults, no methods added by scikit-learn."""
    app.connect("autodoc-process-docstring", _trim_module_docstring)
    app.connect("autodoc-process-docstring", _hide_colon, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", _show_colon, priority=900)  # after napoleon
    app.connect("autodoc-process-signature", _replace_factories)
    app.connect("autodoc-skip-member", _skip_added_methods)


def _trim_module_docstring(app: Any, what: str, name: str, value: object, options: Any, lines: list[str]) -> None:
    if what == "module":
        tree = ["::", "", *(f"    {line}" for line in lines)]  # errors.py draws its classes as a tree
        lines[:] = tree if name == "tidegate.errors" else []


def _hide_colon(app: Any, what: str, name: str, value: object, options: Any, lines: list[str]) -> None:
    """Keep napoleon from reading "The scale: twice the loss." on a property as a type and a description."""
    if what in ("attribute", "property") and lines:
        lines[0] = lines[0].replace(":", HIDDEN_COLON)


def _show_colon(app: Any, what: str, name: str, value: object, options: Any, lines: list[str]) -> None:
    lines[:] = [line.replace(HIDDEN_COLON, ":") for line in lines]


def _replace_factories(
    app: Any, what: str, name: str, value: object, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Write defaults that a dataclass creates for each value as dots: Sphinx cannot read `<factory>`."""
    return (signature.replace("<factory>", "..."), returned) if signature else (signature, returned)


def _skip_added_methods(app: Any, what: str, name: str, value: object, skip: bool, options: Any) -> bool | None:
    return True if re.fullmatch(r"set_\w+_request", name) else None
