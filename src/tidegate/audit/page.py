"""The report as one HTML page that needs nothing else: no script, no address, nothing from outside."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from tidegate.audit.style import STYLE

if TYPE_CHECKING:
    from tidegate.audit.finding import Finding
    from tidegate.audit.report import Audit

TITLES = {
    "answer": ("Answers", "Statistics with noise: whoever knows all but one must not name the missing value."),
    "release": ("Released records", "True records, held back where they would be evidence about a group."),
    "collect": ("Collected reports", "What one person's randomized report gives away."),
    "synthesize": ("Artificial tables", "Tables that are made of noisy counts: nobody's row must show in them."),
    "ledger": ("The ledger", "The record of all that was given out: any change of it must be found."),
}
WORDS = {"held": "held", "broken": "BROKEN", "observed": "observed, not promised", "not tried": "not tried"}
READS = (
    "held: the attack proved less than the promise allows. It is no proof that nothing could.",
    "broken: the attack proved more than the promise allows, and true code is accused so rarely that the code, or the "
    "policy's reading of it, is to blame. Keep this file, give nothing more out, and report it.",
    "observed: nothing is promised about this; the figure is told so that nobody is surprised.",
    "Bars show what was proven; the line is the promise. Bounds are lower bounds: the truth may lie above them.",
)


def page(found: Audit) -> str:
    """The whole page."""
    name = f"Audit of {found.name}"
    broken = " broken" if found.broken else ""
    body = "".join(_section(verb, found) for verb in TITLES)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(name)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        f'<main><h1>{escape(name)}</h1><p class="verdict{broken}">{escape(found.verdict)}</p>{_facts(found)}{_overview(found)}{body}'
        f"{_list('What was not tried', found.untried())}{_list('How to read this', READS)}</main></body></html>\n"
    )


def _facts(found: Audit) -> str:
    from tidegate import __version__

    told = (
        f"{found.when[:16].replace('T', ' ')} UTC, tidegate {__version__}, {found.seconds:.0f} seconds, seed {found.seed}. "
        f"All sampled findings together accuse true code with chance {found.alpha:g} at most. No row of the table was read and "
        "nothing was spent: the attacks make up data sets from what the policy says in public."
    )
    return f'<p class="quiet">{escape(told)} Policy <code>{escape(found.fingerprint[:16])}</code>.</p>'


def _overview(found: Audit) -> str:
    """How many findings of each kind, verb by verb."""
    rows = []
    for verb, (title, _) in TITLES.items():
        counts = Counter(one.verdict for one in found.findings if one.verb == verb)
        told = ", ".join(
            f"{counts[kind]} {WORDS[kind]}" for kind in ("broken", "held", "observed", "not tried") if counts[kind]
        )
        shown = any(counts[kind] for kind in ("broken", "held", "observed"))
        name = f'<a href="#{verb}">{title}</a>' if shown else title
        rows += [f"<tr><th>{name}</th><td>{told}</td></tr>"] if told else []
    return f'<table class="overview">{"".join(rows)}</table>'


def _section(verb: str, found: Audit) -> str:
    own = [one for one in found.findings if one.verb == verb and one.verdict != "not tried"]
    if not own:
        return ""
    title, about = TITLES[verb]
    worst_first = sorted(own, key=lambda one: not one.broken)
    articles = "".join(map(_article, worst_first, [None, *worst_first]))
    return f'<section id="{verb}"><h2>{title}</h2><p>{about}</p>{articles}</section>'


def _article(one: Finding, before: Finding | None) -> str:
    """One attack. What is promised and what the attacker knows are said where they change."""
    kind = one.verdict.replace(" ", "-")
    knows = f'<p class="knows">He knows {escape(one.knows)}.</p>' if before is None or one.knows != before.knows else ""
    new = before is None or one.promise != before.promise
    promise = f'<p class="promise">Promised: {escape(one.promise)}.</p>' if new else ""
    return (
        f'<article class="{kind}"><div class="head"><h3>{escape(_upper(one.attack))}</h3>'
        f'<span class="chip">{WORDS[one.verdict]}</span></div>{promise}{knows}'
        f'{_scale(one)}<p class="says">{escape(_upper(one.says))}</p></article>'
    )


def _scale(one: Finding) -> str:
    """What was proven beside what is promised, drawn to the promise; or beside 1 where it is a share of all cases."""
    if one.bound is None:
        return ""
    whole = one.promised if one.promised is not None else 1.0 if one.unit != "epsilon" else None
    if not whole:
        return ""
    limit = '<i class="limit"></i>' if one.promised is not None else ""
    part = 100 * min(one.bound / whole, 1.12)
    words = f"{_amount(one.bound, one.unit)} proven" + (f", {_amount(whole, one.unit)} promised" if limit else "")
    chance = f"; wrong with chance {one.alpha:.1g}" if one.alpha else ""
    return (
        f'<div class="scale"><span class="track"><i class="bar" style="width:{part:.1f}%"></i>{limit}</span>'
        f'<p class="quiet">{words}{chance}</p></div>'
    )


def _amount(value: float, unit: str) -> str:
    return f"epsilon {value:.3g}" if unit == "epsilon" else f"{value:.3g}"


def _list(title: str, texts: tuple[str, ...] | list[str]) -> str:
    items = "".join(f"<li>{escape(_upper(text))}</li>" for text in texts)
    return f"<section><h2>{title}</h2><ul>{items}</ul></section>"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
