"""HTML is written in templates: no Python file but charts/svg.py builds tags."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCES = [Path(__file__).parent.parent / "src", Path(__file__).parent.parent / "papers" / "src"]
EXCEPTION = Path("tidegate/charts/svg.py")
TAG = re.compile(
    r"</?(?:a|article|aside|b|body|br|button|circle|code|dd|details|div|dl|dt|em|figcaption|figure|footer|form|g|h[1-6]|head|header|"
    r"html|i|img|input|label|li|line|link|main|meta|nav|ol|option|p|path|pre|rect|script|section|select|span|strong|style|"
    r"summary|svg|table|tbody|td|text|th|thead|title|tr|ul)(?:\s[^<>]*)?/?>"
)


def format_texts(path: Path) -> list[str]:
    """Return the constant parts of every f-string, %-format and str.format of a file."""
    texts = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            texts.append("".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values))
        elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            texts.append(node.left.value)
        elif (
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Constant) and node.attr in ("format", "join")
        ):
            texts.append(str(node.value.value))
    return texts


def test_no_python_file_formats_tags() -> None:
    wrong = {}
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            name = path.relative_to(source)
            tags = [text for text in format_texts(path) if TAG.search(text)]
            if tags and name != EXCEPTION:
                wrong[str(name)] = tags
    assert wrong == {}


def test_planted_tags_are_detected(tmp_path: Path) -> None:
    lines = ['x = f"<td>{y}</td>"', 'x = "<p>%s</p>" % y', 'x = "<b>{}</b>".format(y)', 'x = "<br>".join(y)']
    for line in lines:
        (tmp_path / "planted.py").write_text(line)
        assert [text for text in format_texts(tmp_path / "planted.py") if TAG.search(text)]
    (tmp_path / "fine.py").write_text('x = f"{a} < {b} and <name>"')
    assert not [text for text in format_texts(tmp_path / "fine.py") if TAG.search(text)]
