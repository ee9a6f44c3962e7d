"""demo: a table, a policy, questions, a refusal and the ledger, in one go."""

from __future__ import annotations

from pathlib import Path

import typer

from tidegate.cli.show import JSON, emit, say

PEOPLE = 10_000
GOLDEN = (
    0.6180339887498949  # multiples of it fill the unit interval evenly: a table that looks drawn, without randomness
)

POLICY = """\
version = 1

[dataset]
name   = "people"
source = "people.csv"
unit   = "row"
rows   = 10000

[attributes]
person = { kind = "key" }
age    = { kind = "integer", from = 18, to = 90, missing = "dropped" }
sex    = { kind = "category", values = ["female", "male"], missing = "dropped" }
town   = { kind = "category", values = ["Aby", "Berg", "Ceder", "Dal", "Ek"], missing = "dropped" }

[promise.identification]
rho     = 0.05
worlds  = "values"
protect = ["age"]
"""


def demo(
    folder: Path = typer.Option(
        Path("tidegate-demo"), "--folder", help="Where to put the sample data, policy and ledger."
    ),
    json: bool = JSON,
) -> None:
    """Make a sample table, ask it questions, run out of budget, and verify the ledger."""
    import tidegate as tg
    from tidegate.errors import BudgetExceeded
    from tidegate.ledger import told, verify

    folder.mkdir(parents=True, exist_ok=True)
    _write(folder)
    path = folder / "people.toml"
    with tg.open(path) as session:
        question = tg.count().by("town")
        before = session.preview(question, epsilon="0.2")
        given = session.answer(question, epsilon="0.2", who="the demo")
        again = session.answer(question, epsilon="0.2", who="the demo")
        mean = session.answer(tg.mean("age"), error="0.5", who="the demo")
        follows = session.derive(tg.count().where(tg.col("town") == "Aby"))
        try:
            session.answer(tg.histogram("age"), epsilon="2", who="the demo")
            refused = ""
        except BudgetExceeded as error:
            refused = str(error)
        verdict = verify(*session.ledger.snapshot())
        if json:
            answers = {"answer": given.to_dict(), "again": again.to_dict(), "mean": mean.to_dict()}
            free = follows.to_dict() if follows else None
            return emit(
                {"preview": before.to_dict(), **answers, "free": free, "refused": refused, "verified": verdict.holds}
            )
        say(f"{PEOPLE:,} people in {folder / 'people.csv'}; {path} promises: {session.policy.identification}", "")
        say(f"1. What would {question.says()} cost?", f"{before}", "")
        say(
            "2. Ask.",
            *(f"   {row['town']:<6} {row['count']:>6,}" for row in given.rows()),
            f"   {given.charge.says()}",
            "",
        )
        say("3. Ask the same again: the stored answer, free.", f"   {again.charge.says()}", "")
        say(
            "4. The mean age, right to half a year 95 times in 100; the cost follows.",
            f"   {mean.line()}",
            f"   {mean.charge.says()}",
            "",
        )
        say("5. What follows from answers already given is free.", f"   {follows}", "")
        say("6. Ask for more than is left: refused, nothing is spent.", "   " + refused.replace("\n", "\n   "), "")
        say("7. The ledger:", *(f"   {entry.number:>2}  {text}" for entry, text in told(session.ledger.entries())))
        say(
            f"   {verdict.entries} entries {'hold' if verdict.holds else 'DO NOT HOLD'}, head {verdict.head[:16]}...",
            "",
        )
        return say(
            "Go on:",
            f"   tidegate check {path}",
            f'   tidegate answer {path} "SELECT sex, AVG(age) FROM people GROUP BY sex" --rho 0.02 --preview',  # noqa: S608
            f"   tidegate ledger show {path}",
        )


def _write(folder: Path) -> None:
    """The table and its policy, where they are not there yet."""
    if not (folder / "people.csv").exists():
        rows = (
            f"p{number:05d},{18 + int(72 * _spread(number, 1) ** 2)},{_pick(number, 2, ('female', 'male'))},{_town(number)}"
            for number in range(PEOPLE)
        )
        (folder / "people.csv").write_text("person,age,sex,town\n" + "\n".join(rows) + "\n", "utf-8")
    if not (folder / "people.toml").exists():
        (folder / "people.toml").write_text(POLICY, "utf-8")


def _spread(number: int, column: int) -> float:
    return (number * GOLDEN**column * (1 + column / 7)) % 1.0


def _pick(number: int, column: int, values: tuple[str, ...]) -> str:
    return values[int(_spread(number, column) * len(values))]


def _town(number: int) -> str:
    return _pick(number, 3, ("Aby", "Aby", "Aby", "Berg", "Berg", "Berg", "Ceder", "Ceder", "Dal", "Ek"))
