"""All commands, by name."""

from __future__ import annotations

import typer

from tidegate.cli import (
    answering,
    attacking,
    auditing,
    collecting,
    collecting_tree,
    deciding,
    demo,
    designing,
    operators,
    qualifying,
    releasing,
    reproducing,
    ruling,
    serving,
    synthesizing,
    valuing,
    worlds,
)

app = typer.Typer(
    help="Give data out without giving people away.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they print local variables, which may be private
    add_completion=True,
    context_settings={"max_content_width": 110},
    rich_markup_mode=None,  # its boxes take half a second to load, and [brackets] in sentences are no markup
)

risk = typer.Typer(help="Privacy measures, as a calculator.", no_args_is_help=True)

app.command("demo")(demo.demo)
app.command("init")(deciding.init)
app.command("check")(deciding.check)
app.command("answer")(answering.answer)
app.command("release")(releasing.release)
app.command("synthesize")(synthesizing.synthesize)
app.command("quality")(qualifying.quality)
app.add_typer(collecting.collect, name="collect")
collecting.collect.command("design")(designing.design)
collecting.collect.command("rules")(ruling.rules)
collecting.collect.command("tree")(collecting_tree.tree)
app.add_typer(risk, name="risk")
risk.command("convert")(deciding.convert)
risk.command("worlds")(worlds.worlds)
risk.command("operator")(operators.operator)
risk.command("advise")(operators.advise)
risk.command("value")(valuing.value)
app.add_typer(auditing.ledger, name="ledger")
app.command("audit")(attacking.audit)
app.command("serve")(serving.serve)
app.add_typer(serving.token, name="token")
app.add_typer(reproducing.reproduce, name="reproduce")


def _version(wanted: bool) -> None:
    if wanted:
        from tidegate import __version__

        print(f"tidegate {__version__}")
        raise typer.Exit


@app.callback()
def tidegate(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Give data out without giving people away."""
