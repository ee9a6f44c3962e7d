"""Dependencies: which ones hold, how many synthetic rows break them, and lines that the policy accepts."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tidegate.cli.app import app
from tidegate.policy import Attribute, Category, Dataset, Date, Grid, Integer, Loss, Policy, parse_policy
from tidegate.policy.toml import write_policy
from tidegate.synthesize.quality import dependencies
from tidegate.synthesize.quality.codes import encode
from tidegate.synthesize.quality.dependencies import Dependency, dependencies_of

TOWNS = tuple(f"town {number}" for number in range(24))
ATTRIBUTES: dict[str, Attribute] = {
    "town": Category(TOWNS, "value"),
    "county": Category(("north", "south", "east", "west"), "value"),
    "mayor": Category(("a", "b")),
    "tax": Grid("0", "1", "0.25"),
    "founded": Date(dt.date(1900, 1, 1), dt.date(1999, 12, 31), "month"),
    "age": Integer(0, 99),
    "serial": Integer(0, 10**6),
}


def towns(rows: int, seed: int) -> pd.DataFrame:
    """Return rows where county, tax and founding month follow from the town; mayor and age do not."""
    draw = np.random.default_rng(seed)
    town = draw.integers(0, 23, rows)  # the last town has no row
    return pd.DataFrame(
        {
            "town": [TOWNS[code] for code in town],
            "county": np.array(["north", "south", "east", "west"])[town % 4],
            "mayor": draw.choice(["a", "b"], rows),
            "tax": (town % 5) / 4,
            "founded": [dt.date(1900 + int(code) % 7, 1 + int(code) % 5, 1) for code in town],
            "age": draw.integers(0, 100, rows),
            "serial": np.arange(rows) + 17,
        }
    )


def compare(true: Any, synthetic: Any, attributes: dict[str, Attribute] = ATTRIBUTES) -> dict[str, Dependency]:
    sides = [encode(pa.Table.from_pandas(frame, preserve_index=False), attributes) for frame in (true, synthetic)]
    return {f"{of.by} -> {of.column}": of for of in dependencies_of(sides[0], [sides[1]])}


def test_dependencies_match_pandas() -> None:
    true = towns(3000, 1)
    expected = {}
    for by in ATTRIBUTES:
        for column in ATTRIBUTES:
            explained = true.groupby(by)[column].agg(lambda values: values.value_counts().iloc[0]).sum()
            if by != column and true[by].nunique() * 5 <= len(true) and explained >= 0.99 * len(true):
                expected[f"{by} -> {column}"] = explained / len(true)
    assert {"town -> county", "town -> tax", "town -> founded"} <= expected.keys()
    assert "serial -> mayor" not in expected  # a key determines everything, which says nothing
    assert {name: of.holds for name, of in compare(true, true).items()} == expected
    assert all(of.broken == 0 for of in compare(true, true).values())


def test_broken_rows_are_counted() -> None:
    true, synthetic = towns(3000, 1), towns(2000, 2)
    changed = np.random.default_rng(3).random(2000) < 0.15
    synthetic.loc[changed, "county"] = synthetic.loc[changed, "county"].map(
        {"north": "south", "south": "east", "east": "west", "west": "north"}
    )
    result = compare(true, synthetic)
    assert result["town -> county"].broken == pytest.approx(changed.mean())
    assert result["town -> tax"].broken == 0


def test_rare_exceptions_are_allowed_and_frequent_ones_are_not() -> None:
    true = towns(5000, 1)
    true.loc[:39, "county"] = "north"  # at most 40 of 5,000 rows differ
    assert 0.99 < compare(true, true)["town -> county"].holds < 1
    true.loc[:199, "county"] = "north"
    assert "town -> county" not in compare(true, true)


def test_column_with_one_dominant_value_does_not_follow_from_everything() -> None:
    true = towns(5000, 1)
    true["mayor"] = np.where(np.arange(5000) % 200 == 0, "a", "b")  # "b" in 99.5% of the rows
    assert not [name for name in compare(true, true) if name.endswith("-> mayor")]


def test_wide_pairs_are_counted_without_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    true, synthetic = towns(3000, 1), towns(2000, 2)
    expected = compare(true, synthetic)
    monkeypatch.setattr(dependencies, "MOST_COUNTED", 0)
    assert compare(true, synthetic) == expected


def test_lines_are_accepted_by_the_policy_and_make_the_dependency_hold(tmp_path: Path) -> None:
    true = towns(3000, 1)
    lines = [of.line for of in compare(true, true).values() if of.line]
    assert len(lines) >= 3
    policy = Policy(Dataset("towns", "towns.csv", rows=3000), ATTRIBUTES, None, Loss("1"))
    text = write_policy(policy) + "\n".join(["", "[synthesis]", *lines])
    (tmp_path / "towns.toml").write_text(text, "utf-8")
    true.to_csv(tmp_path / "towns.csv", index=False)
    accepted = CliRunner().invoke(app, ["check", str(tmp_path / "towns.toml")])
    assert accepted.exit_code == 0, accepted.output
    checked = parse_policy(text)
    follows = checked.synthesis.follows
    assert set(follows) == {"county", "tax", "founded"}
    for row in true.head(200).to_dict("records"):
        assert follows["county"].values[row["town"]] == row["county"]
        assert float(follows["tax"].values[row["town"]]) == row["tax"]
        assert follows["founded"].values[row["town"]] == row["founded"].isoformat()
    assert compare(true, true)["town -> county"].unseen == ("town 23",)


def test_columns_that_determine_each_other_get_one_line() -> None:
    attributes: dict[str, Attribute] = {"code": Integer(0, 9), "name": Category(tuple("abcdefghij"))}
    codes = np.random.default_rng(1).integers(0, 10, 500)
    true = pd.DataFrame({"code": codes, "name": [attributes["name"].label(int(code)) for code in codes]})
    result = list(compare(true, true, attributes).values())
    assert [bool(of.line) for of in result] == [True, False]
    assert "itself follows" in result[1].why
    line = tomllib.loads(result[0].line)["follows"]
    assert list(line) == ["name"]
    assert line["name"]["values"]["3"] == "d"


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [(Integer(0, 10_000), "at most 512"), (Grid("0", "11", "0.5"), "neither a category nor whole numbers")],
)
def test_left_column_that_the_policy_cannot_list_is_explained(attribute: Attribute, reason: str) -> None:
    attributes: dict[str, Attribute] = {"left": attribute, "right": Category(("even", "odd"))}
    left = np.random.default_rng(1).integers(0, 12, 500)
    true = pd.DataFrame({"left": left, "right": np.where(left % 2, "odd", "even")})
    dependency = compare(true, true, attributes)["left -> right"]
    assert (dependency.line, dependency.holds) == ("", 1)
    assert reason in dependency.why


def test_missing_values_are_explained_and_absent_rows_are_not_counted() -> None:
    true = towns(3000, 1)
    gone = true["town"] == "town 3"
    true.loc[gone, "county"] = None
    dependency = compare(true, true)["town -> county"]
    assert dependency.holds == 1
    assert "is missing for a value" in dependency.why
    true.loc[true["town"] == "town 4", "town"] = None
    assert compare(true, true)["town -> tax"].holds == 1
