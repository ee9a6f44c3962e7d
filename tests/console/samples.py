"""Three small data sets with their policies in files, and one under the average guarantee."""

from __future__ import annotations

from pathlib import Path

TOWNS = ("Aby", "Berg", "Ceder", "Dal")
PLACES = ("L1", "L2", "L3", "L4", "L5")
PEOPLE = 600

PEOPLE_POLICY = f"""\
version = 1

[dataset]
name   = "people"
source = "people.csv"
unit   = "row"
rows   = {PEOPLE}

[attributes]
person = {{ kind = "key" }}
age    = {{ kind = "integer", from = 18, to = 90, bins = [30, 45, 60, 75], missing = "dropped" }}
sex    = {{ kind = "category", values = ["female", "male"], missing = "dropped" }}
town   = {{ kind = "category", values = ["Aby", "Berg", "Ceder", "Dal"], missing = "dropped" }}

[promise.identification]
rho        = 0.02
worlds     = "persons"
population = 60_000
"""

SOLDIERS_POLICY = """\
version = 1

[dataset]
name   = "soldiers"
source = "soldiers.csv"
unit   = "row"
rows   = 300

[attributes]
name     = { kind = "key" }
age      = { kind = "integer", from = 18, to = 57, bins = [28, 38, 48], missing = "dropped" }
location = { kind = "category", values = ["L1", "L2", "L3", "L4", "L5"], missing = "dropped" }

[promise.concealment.headquarters]
reveals      = ["age"]
about        = ["location"]
tests        = ["mutual-information", "kullback-leibler"]
significance = 0.20
baseline     = [1, 1, 1, 1]
shares       = [1, 1, 1, 1, 1]
releases     = ["name", "age", "location"]
"""

SHOP_POLICY = """\
version = 1

[dataset]
name = "shop"
unit = "row"

[attributes]
age    = { kind = "integer", from = 18, to = 57, bins = [28, 38, 48] }
town   = { kind = "category", values = ["Aby", "Berg", "Ceder"] }
basket = { kind = "items", vocabulary = ["milk", "bread", "tea"] }

[collection.shoppers]
questions.age  = { attribute = "age", operator = "square-wave", epsilon = 2.0 }
questions.town = { attribute = "town", operator = "unary", epsilon = 2.0 }
"""

INCOMES_POLICY = f"""\
version = 2

[dataset]
name   = "incomes"
source = "incomes.csv"
unit   = "row"
rows   = {PEOPLE}

[attributes]
age    = {{ kind = "integer", from = 18, to = 90, bins = [30, 45, 60, 75], missing = "lowest" }}
income = {{ kind = "integer", from = 0, to = 1_000_000, bins = [20_000, 50_000, 100_000], missing = "lowest" }}
town   = {{ kind = "category", values = ["Aby", "Berg", "Ceder", "Dal"], missing = "value" }}

[promise.identification]
rho       = 0.05
worlds    = "values"
guarantee = "average"
protect   = ["age", "income"]
within    = {{ income = 5_000 }}
"""


def write_average_sample(folder: Path) -> list[str]:
    """Write a data set under the average guarantee; return the path of its policy."""
    people = (f"{18 + n * 7 % 73},{n * 7919 % 120_000},{TOWNS[n * n % 4]}" for n in range(PEOPLE))
    _write(folder / "incomes.csv", "age,income,town", people)
    (folder / "incomes.toml").write_text(INCOMES_POLICY, "utf-8")
    return [str(folder / "incomes.toml")]


def write_samples(folder: Path) -> list[str]:
    """Write data and policies; return the paths of the policies."""
    people = (f"p{n:04d},{18 + n * 7 % 73},{('female', 'male')[n % 2]},{TOWNS[n * n % 4]}" for n in range(PEOPLE))
    _write(folder / "people.csv", "person,age,sex,town", people)
    soldiers = (f"s{n:03d},{_age(n)},{PLACES[n % 5]}" for n in range(300))
    _write(folder / "soldiers.csv", "name,age,location", soldiers)
    policies = {"people": PEOPLE_POLICY, "soldiers": SOLDIERS_POLICY, "shop": SHOP_POLICY}
    for name, text in policies.items():
        (folder / f"{name}.toml").write_text(text, "utf-8")
    return [str(folder / f"{name}.toml") for name in policies]


def _age(number: int) -> int:
    """The soldiers of L3 are old, so its records would reveal it."""
    return 50 + number % 8 if PLACES[number % 5] == "L3" else 18 + number * 7 % 40


def _write(path: Path, head: str, lines: object) -> None:
    path.write_text("\n".join([head, *lines]) + "\n", "utf-8")  # type: ignore[misc]
