"""The pages of papers/docs/gallery: every published number beside ours, and the figures.

    for NAME in identifiability release randomization pmse; do
        tidegate reproduce $NAME --json --out FOLDER/$NAME > FOLDER/$NAME.json
    done
    python docs/_ext/gallery.py FOLDER

The runs take about ten minutes and need the public data sets of papers/docs/reproduce.md. Pages and pictures are
committed.
"""

from __future__ import annotations

import base64
import html
import io
import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from tidegate_papers.item import WORDS
from tidegate_papers.report import cell

GALLERY = Path(__file__).parents[2] / "papers" / "docs" / "gallery"
PAPERS = {
    "identifiability": ("Identifiability", "Lee & Clifton 2012, Differential Identifiability", "answer"),
    "release": ("Release control", "Bezzi et al. 2012, releasing records under control", "release"),
    "randomization": ("Randomization", "Evfimievski 2002, randomization in privacy preserving data mining", "collect"),
    "pmse": ("The pMSE mechanism", "Snoke & Slavkovic 2018, pMSE Mechanism", "synthesize"),
}
FIGURE = re.compile(r'<img alt="([^"]*)" src="data:image/png;base64,([^"]*)"')
COLORS = 64
LIMIT = 200_000


def write_gallery(folder: Path) -> None:
    """Write all pages from the output of the command in a folder."""
    GALLERY.mkdir(exist_ok=True)
    results = {name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in PAPERS}
    for name, items in results.items():
        (GALLERY / f"{name}.md").write_text(_page(name, items, _pictures(folder / name, name)), "utf-8")
    (GALLERY / "index.md").write_text(_index(results), "utf-8")


def _index(results: dict[str, list[dict[str, Any]]]) -> str:
    rows = "".join(
        f"| [{PAPERS[name][1]}]({name}.md) | {PAPERS[name][2]} | {' | '.join(str(_count(items, status)) for status in WORDS)}"
        f" | `tidegate reproduce {name}` |\n"
        for name, items in results.items()
    )
    return f"""# Gallery

Tables and figures of four papers, computed again with the functions of Tidegate, with the paper's value beside ours. [The papers
reproduced](../reproduce.md) explains how each number was interpreted and why some differ.

| paper | verb | reproduced | within noise | better | errata | differ | command |
|---|---|---|---|---|---|---|---|
{rows}
*Reproduced*: ours prints like the paper's value, or supports its sentence. *Within noise*: a number drawn at random, within two standard
errors of the difference, which must be less than the number itself; the note has z, the number of draws and that distance. The largest
of many quartiles has the limit that chance exceeds as rarely. *Better*: ours beats the printed value beyond noise, or goes beyond the sentence;
this is a statement about us. *Erratum*: the paper's value is wrong, and ours is the corrected one. *Differs*: none of these.

```{{toctree}}
:hidden:

{chr(10).join(results)}
```
"""


def _count(items: list[dict[str, Any]], status: str) -> int:
    return sum(item["status"] == status for item in items)


def _page(name: str, items: list[dict[str, Any]], pictures: list[tuple[str, str]]) -> str:
    title, paper, _ = PAPERS[name]
    groups = itertools.groupby(items, key=lambda item: item["where"].partition("(")[0].strip())
    tables = "".join(f"\n### {where}\n\n{_table(list(group))}" for where, group in groups)
    figures = "".join(f"\n![{words}]({path})\n\n{words}\n" for words, path in pictures)
    return (
        f"# {title}: the paper's numbers beside ours\n\n{paper}. {len(items)} items: "
        f"{', '.join(f'{_count(items, status)} {words[1]}' for status, words in WORDS.items())}. Made from\n\n"
        f"```text\ntidegate reproduce {name} --json --out {name}\n```\n\n## Figures\n{figures}\n## Every number\n{tables}"
    )


def _table(items: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"| `{item['id']}` | {_value(item['published'])} | {_value(item['ours'])} | {_status(item['status'])} | {_safe(item['note'])} |\n"
        for item in items
    )
    return f"| item | published | ours | | note |\n|---|---|---|---|---|\n{rows}"


def _status(status: str) -> str:
    return status if status == "reproduced" else f"**{status}**"


def _value(value: Any) -> str:
    if (
        isinstance(value, dict)
        and len(value) <= 8
        and all(isinstance(one, int | float | str) for one in value.values())
    ):
        return "; ".join(f"{_safe(str(key))} {_safe(cell(one))}" for key, one in value.items())
    return _safe(cell(value))


def _safe(text: str) -> str:
    return re.sub(r"([|*_<\[\]])", r"\\\1", text)


def _pictures(folder: Path, name: str) -> list[tuple[str, str]]:
    """Return the captions and paths of the figures on the command's own page, after storing smaller copies."""
    file_names = {path.read_bytes(): path.name for path in folder.glob("*.png")}
    figures = []
    for caption, content in FIGURE.findall((folder / f"{name}.html").read_text("utf-8")):
        picture = base64.b64decode(content)
        path = GALLERY / "pictures" / f"{name}-{file_names[picture]}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(_smaller(picture))
        figures.append((html.unescape(caption), f"pictures/{path.name}"))
    return figures


def _smaller(picture: bytes) -> bytes:
    """Reduce the colors of a picture: few are enough for lines and letters."""
    file = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLORS).save(file, "png", optimize=True)
    if len(file.getvalue()) > LIMIT:
        raise ValueError("The picture is larger than 200 KB. Plot fewer points.")
    return file.getvalue()


if __name__ == "__main__":
    write_gallery(Path(sys.argv[1]))
