"""The table of commands."""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from tidegate.cli import (
    answer,
    audit,
    collect,
    demo,
    design,
    init,
    jobs,
    ledger,
    operators,
    policy,
    poll,
    quality,
    release,
    rules,
    serve,
    synthesize,
    warm,
    worlds,
)
from tidegate.cli.output import listen, stop_listening
from tidegate.errors import MissingExtra

app = typer.Typer(
    help="Publish data without revealing people.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # tracebacks print local variables, which can be private
    add_completion=True,
    context_settings={"max_content_width": 110},
    rich_markup_mode=None,  # its boxes take half a second to load, and [brackets] in sentences are not markup
)

risk = typer.Typer(help="Calculate privacy measures.", no_args_is_help=True)

app.command("demo", short_help="Try all functions on sample data, with the console.")(demo.demo)
app.command("init", short_help="Write a draft policy with open decisions.")(init.init)
app.command("check", short_help="Explain each promise and report what is missing.")(policy.check)
app.command("answer", short_help="Answer queries with noise.")(answer.answer)
app.command("release")(release.release)
app.command("synthesize")(synthesize.synthesize)
app.command("quality")(quality.quality)
app.add_typer(collect.collect, name="collect")
collect.collect.command("design", short_help="Find the operator with the smallest error for baskets.")(design.design)
collect.collect.command("rules", short_help="Find association rules in randomized baskets.")(rules.rules)
collect.collect.command("tree")(collect.tree)
app.add_typer(poll.poll, name="poll")
app.add_typer(risk, name="risk")
risk.command("convert", short_help="Convert rho to epsilon, or epsilon to rho.")(policy.convert)
risk.command("worlds", short_help="Calculate each value's probability after a noisy answer.")(worlds.worlds)
risk.command("operator", short_help="Show all privacy measures of one report.")(operators.operator)
risk.command("advise", short_help="Recommend an operator for a privacy requirement.")(operators.advise)
app.add_typer(ledger.ledger, name="ledger")
app.command("audit")(audit.audit)
app.command("serve", short_help="Serve data sets and their console over HTTP.")(serve.serve)
app.add_typer(serve.token, name="token")
app.add_typer(jobs.job, name="job")
app.command("warm", short_help="Compile loops in advance, so that no request waits for it.")(warm.warm)

PAPERS = {
    "reproduce": (app, "Reproduce the papers' tables and figures."),
    "value": (risk, "Calculate fair shares of the value of private information."),
}


def _add_papers() -> None:
    """Add the commands of the distribution tidegate-papers, or commands that explain how to install it."""
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


def _version(is_requested: bool) -> None:
    if is_requested:
        from tidegate import __version__

        print(f"tidegate {__version__}")
        raise typer.Exit


@app.callback()
def tidegate(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Publish data without revealing people."""
    listen()
    context.call_on_close(stop_listening)
