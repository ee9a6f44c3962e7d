"""All commands, by name."""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from tidegate.cli import (
    answer,
    audit,
    collect,
    demo,
    design,
    ledger,
    operators,
    policy,
    quality,
    release,
    rules,
    serve,
    synthesize,
    worlds,
)
from tidegate.cli.output import listen, stop_listening
from tidegate.errors import MissingExtra

app = typer.Typer(
    help="Give data out without giving people away.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they print local variables, which may be private
    add_completion=True,
    context_settings={"max_content_width": 110},
    rich_markup_mode=None,  # its boxes take half a second to load, and [brackets] in sentences are no markup
)

risk = typer.Typer(help="Privacy measures, as a calculator.", no_args_is_help=True)

app.command("demo", short_help="Try everything on sample data, with the console.")(demo.demo)
app.command("init", short_help="Write a first policy, with every decision left open.")(policy.init)
app.command("check", short_help="Say what each promise means here, and what is missing.")(policy.check)
app.command("answer", short_help="Ask for statistics with noise.")(answer.answer)
app.command("release")(release.release)
app.command("synthesize")(synthesize.synthesize)
app.command("quality")(quality.quality)
app.add_typer(collect.collect, name="collect")
collect.collect.command("design", short_help="The operator of least error for baskets.")(design.design)
collect.collect.command("rules", short_help="Which items go together, from randomized baskets.")(rules.rules)
collect.collect.command("tree")(collect.tree)
app.add_typer(risk, name="risk")
risk.command("convert", short_help="rho to epsilon, or epsilon to rho.")(policy.convert)
risk.command("worlds", short_help="How likely each possible world is after a noisy answer.")(worlds.worlds)
risk.command("operator", short_help="All privacy measures of one report.")(operators.operator)
risk.command("advise", short_help="Which operator keeps a wanted privacy, and its error.")(operators.advise)
app.add_typer(ledger.ledger, name="ledger")
app.command("audit")(audit.audit)
app.command("serve", short_help="Serve data sets and their console over HTTP.")(serve.serve)
app.add_typer(serve.token, name="token")

PAPERS = {
    "reproduce": (app, "The papers' tables and figures, computed again."),
    "value": (risk, "Fair shares of what private information earns."),
}


def _add_papers() -> None:
    """Add the commands of the distribution tidegate-papers, or commands that say how to install it."""
    installed = {point.name: point for point in entry_points(group="tidegate.commands")}
    for name, (parent, text) in PAPERS.items():
        if name not in installed:
            settings = {"allow_extra_args": True, "ignore_unknown_options": True}
            parent.command(name, short_help=text, context_settings=settings)(_name_papers)
        elif isinstance(command := installed[name].load(), typer.Typer):
            parent.add_typer(command, name=name)
        else:
            parent.command(name, short_help=text)(command)


def _name_papers() -> None:
    """Not installed: pip install tidegate-papers."""
    raise MissingExtra("This command needs the distribution tidegate-papers.", "pip install tidegate-papers")


_add_papers()


def _version(wanted: bool) -> None:
    if wanted:
        from tidegate import __version__

        print(f"tidegate {__version__}")
        raise typer.Exit


@app.callback()
def tidegate(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Give data out without giving people away."""
    listen()
    context.call_on_close(stop_listening)
