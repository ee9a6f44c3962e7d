"""A tour in the terminal: questions, one that is free, a refusal, and the ledger."""

from __future__ import annotations

from pathlib import Path

from tidegate import demo
from tidegate.cli.output import emit, say
from tidegate.demo import people


def tour(folder: Path, *, json: bool) -> None:
    """Ask the people some questions, run out of budget, and verify the ledger."""
    import tidegate as tg
    from tidegate.errors import BudgetExceeded
    from tidegate.ledger import told

    path = demo.policies(folder)["people"]
    with tg.open(path, ledger=demo.LEDGER) as session:
        question = tg.count().by("town")
        before = session.preview(question, epsilon="0.2")
        given = session.answer(question, epsilon="0.2", user="the demo")
        again = session.answer(question, epsilon="0.2", user="the demo")
        mean = session.answer(tg.mean("age"), error="0.5", user="the demo")
        follows = session.derive(tg.count().where(tg.col("town") == "Aby"))
        try:
            session.answer(tg.histogram("age"), epsilon="2", user="the demo")
            refused = ""
        except BudgetExceeded as error:
            refused = str(error)
        verdict = session.ledger.verify()
        if json:
            answers = {"answer": given.to_dict(), "again": again.to_dict(), "mean": mean.to_dict()}
            free = follows.to_dict() if follows else None
            return emit(
                {"preview": before.to_dict(), **answers, "free": free, "refused": refused, "verified": verdict.holds}
            )
        say(
            f"{people.PEOPLE:,} people in {folder / 'people.csv'}; {path} promises: {session.policy.identification}", ""
        )
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
