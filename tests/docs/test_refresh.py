"""The refresh of shown output changes what no longer matches, and nothing else."""

from __future__ import annotations

from pathlib import Path

from docs.refresh import UNKNOWN, merge_output, refresh

PAGE = """# A page

```console
$ echo "cost 0.2, remaining 1.1"
cost 0.2, left 1.1
$ echo same
same
```

```python
print("three rows")
```

```output
two rows
```
"""


def test_refresh_rewrites_only_output_that_does_not_match(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, "utf-8")
    assert refresh(page)
    assert page.read_text("utf-8") == PAGE.replace("cost 0.2, left 1.1", "cost 0.2, remaining 1.1").replace(
        "two", "three"
    )
    assert not refresh(page)


def test_omitted_lines_stay_omitted() -> None:
    printed = "a header\nidentification at most 0.05\nsource read by duckdb\nNo problem.\n"
    assert merge_output("...\nsource found by duckdb\n...\n", printed) == "...\nsource read by duckdb\n..."


def test_line_without_a_counterpart_is_marked() -> None:
    assert (
        merge_output("...\nsomething else entirely 12345\n", "ok\n") == f"...\n{UNKNOWN}something else entirely 12345"
    )
