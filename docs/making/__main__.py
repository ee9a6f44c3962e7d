"""Write the reference pages and the site: ``make docs``."""

from __future__ import annotations

from making.pages import ROOT
from making.reference import write_reference
from making.site import build

if __name__ == "__main__":
    write_reference()
    folder = ROOT / "build" / "docs"
    print(f"{build(folder)} pages: {folder / 'index.html'}")
