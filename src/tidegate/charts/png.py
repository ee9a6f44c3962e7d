"""SVG to PNG. If the shipped font has every character, it is the only one used, so that files look the same everywhere."""

from __future__ import annotations

import re
from importlib.resources import as_file, files

FAMILY = "DejaVu Sans"
FONT = files("tidegate.charts") / "DejaVuSans.ttf"

# What the shipped subset of the font contains: Latin, Greek, Cyrillic, punctuation, arrows and some mathematics.
COVERED = re.compile(
    "[\\s\u0020-\u007e\u00a0-\u017f\u0192\u01cd-\u01dc\u0218-\u021b\u02c6-\u02dd\u0370-\u0377\u037a-\u037e\u0384-\u038a"
    "\u038c\u038e-\u03a1\u03a3-\u045f\u0490-\u0491\u1e80-\u1e85\u1e9e\u1ea0-\u1ef9\u2010-\u2027\u2030-\u203a\u2044"
    "\u2070-\u2071\u2074-\u208e\u2090-\u209c\u20a0-\u20b5\u20b8-\u20ba\u20bd\u2116\u2122\u2190-\u2195\u21d2\u2200-\u222b"
    "\u2248\u2260-\u2265\u25a0-\u25cf\ufffd]*"
)


def render(svg: str, *, scale: float = 2.0) -> bytes:
    """Return a standalone SVG as PNG. Text outside the shipped font needs a font of the machine."""
    from resvg_py import svg_to_bytes

    with as_file(FONT) as font:
        return bytes(
            svg_to_bytes(
                svg_string=svg,
                zoom=scale,
                skip_system_fonts=COVERED.fullmatch(svg) is not None,
                font_files=[str(font)],
                font_family=FAMILY,
                sans_serif_family=FAMILY,
            )
        )
