"""collect design: the best operator for baskets under a breach level and an epsilon, and its expected error."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tidegate.cli.output import JSON, counted, emit, say, table
from tidegate.errors import SourceMissing, Unsupported

if TYPE_CHECKING:
    from tidegate.collect.baskets.design import Design, Designed, Profile, Wishes

EXAMPLE = "For example: --items 500 --clients 5000000 --breach 0.5 --epsilon 6 --min-support 0.002"


def design(
    items: int = typer.Option(..., "--items", help="The number of different items."),
    clients: int = typer.Option(..., "--clients", help="The expected number of baskets."),
    min_support: str = typer.Option(..., "--min-support", help="The smallest support of interest: 0.002."),
    breach: str | None = typer.Option(None, help="The largest probability of an item after a report: 0.5."),
    epsilon: str | None = typer.Option(None, help="The largest local loss between two baskets of the same size."),
    sizes: str | None = typer.Option(
        None, help="Fractions of basket sizes: 1:0.5,2:0.3,3:0.2 (default: short baskets)."
    ),
    supports: str | None = typer.Option(None, help="The largest support of 1, 2, 3, ... items together: 0.05,0.01."),
    like: Path | None = typer.Option(
        None, "--like", help="A public sample with one basket per line, for sizes and supports."
    ),
    largest: int = typer.Option(10, "--largest", help="With --like: the largest basket size."),
    json: bool = JSON,
) -> None:
    """Find the operator with the smallest error for baskets of each size, and compare it with the best cut-and-paste."""
    from tidegate.collect.baskets.design import Wishes
    from tidegate.collect.baskets.design import design as find

    level, loss = _optional(breach, "breach"), _optional(epsilon, "epsilon")
    profile = None if like is None else _sample(like, level, largest)
    assumptions = _universe(profile, sizes, supports)
    wishes = Wishes(items, clients, _number(min_support, "min-support"), breach=level, epsilon=loss, **assumptions)
    with counted("designing") as progress:
        best = find(wishes, progress=progress)
    if json:
        return emit(as_json(best))
    return _show(best, profile, assumed=level is not None and profile is None and supports is None)


def _universe(profile: Profile | None, sizes: str | None, supports: str | None) -> dict[str, Any]:
    """Return the fractions of sizes and the maximum supports, as far as they are known."""
    from tidegate.collect.baskets.design import short_baskets

    shares = short_baskets() if profile is None else profile.sizes
    if sizes is not None:
        shares = dict(_share(part) for part in sizes.split(","))
    maximum = {} if profile is None else dict(profile.maximum)
    if supports is not None:
        each = (Fraction(1), *(_number(part, "supports") for part in supports.split(",")))
        if list(each) != sorted(each, reverse=True):
            raise Unsupported("`--supports` must not increase: larger itemsets are never in more baskets.", EXAMPLE)
        maximum = dict.fromkeys(shares, each)
    return {"sizes": shares, "maximum": maximum}


def _share(part: str) -> tuple[int, Fraction]:
    size, _, share = part.partition(":")
    if not size.strip().isdigit():
        raise Unsupported("`--sizes` must contain sizes and their fractions.", "Write --sizes 1:0.5,2:0.3,3:0.2.")
    return int(size), _number(share, "sizes")


def _sample(path: Path, level: Fraction | None, largest: int) -> Profile:
    from tidegate.collect.baskets.design import profile_of

    if not path.is_file():
        raise SourceMissing(
            f"The file {path} does not exist.", "Name a file with one basket per line, items separated by spaces."
        )
    with path.open(encoding="utf-8", errors="replace") as lines:
        return profile_of((line.split() for line in lines), level=level, largest=largest)


def _show(best: Design, profile: Profile | None, *, assumed: bool) -> None:
    wishes = best.wishes
    say(f"{wishes.items:,} items, {wishes.clients:,} baskets; {_limits(wishes)}.")
    headers = ["size", "fraction", "insert", "keep 0, 1, ... items with probability", "breach", "epsilon", "one item"]
    table(headers, [_row(designed) for designed in best.sizes], right={0, 1, 2, 4, 5, 6})
    say("Standard deviation of an estimated support, in percent of all baskets:")
    headers = ["items", "this operator", "cut-and-paste, same limits"]
    alone = wishes.breach is not None and wishes.epsilon is not None
    table(
        headers + ["cut-and-paste, breach alone"] * alone,
        [_sigma_row(best, k, alone) for k in _mined(best)],
        right={1, 2, 3},
    )
    if alone:
        say(f"Cut-and-paste under the breach level alone: epsilon up to {_loss(_baseline_loss(best))}.")
    say(*_recovers(best))
    if assumed:
        say(
            "Assumption: the most frequent item is in 4.5% of baskets of one item and grows with the square root of the size; each"
        )
        say(
            "further item halves the support. The breach level depends on this: use --supports, or --like with a public sample."
        )
    if profile is not None:
        _say_profile(profile)
    say(
        "The size of a basket is sent unrandomized and is not covered by epsilon. To hide it, use one size for all baskets."
    )


def _limits(wishes: Wishes) -> str:
    from tidegate.exact import say as number

    parts = []
    if wishes.breach is not None:
        parts.append(f"no item more probable than {number(wishes.breach)} after a report")
    if wishes.epsilon is not None:
        parts.append(f"epsilon at most {number(wishes.epsilon)}")
    return ", ".join(parts)


def _row(designed: Designed) -> list[str]:
    keep = " ".join(f"{float(probability):.4f}" for probability in designed.plan.keep)
    loss = designed.risk.loss
    return [
        str(designed.plan.size),
        f"{100 * float(designed.share):.1f}%",
        f"{float(designed.plan.insert):.4f}",
        keep,
        f"{float(designed.risk.worst.after):.3f}",
        _loss(loss.epsilon),
        _loss(loss.epsilon_one_replaced),
    ]


def _loss(epsilon: float) -> str:
    return "unlimited" if math.isinf(epsilon) else f"{epsilon:.3f}"


def _sigma_row(best: Design, items: int, alone: bool) -> list[str]:
    baselines = [best.rival_sigma(items)] + [best.rival_sigma(items, same_limits=False)] * alone
    return [
        str(items),
        f"{100 * best.sigma(items):.4f}",
        *("none" if math.isinf(sigma) else f"{100 * sigma:.4f}" for sigma in baselines),
    ]


def _mined(best: Design) -> range:
    from tidegate.collect.baskets.design import MINED

    return range(1, min(MINED, max(designed.plan.size for designed in best.sizes)) + 1)


def _baseline_loss(best: Design) -> float:
    return max(
        (designed.breach_alone.epsilon for designed in best.sizes if designed.breach_alone is not None), default=0.0
    )


def _recovers(best: Design) -> list[str]:
    """Compare the deviation with the smallest support: above half of it, there are too many candidates to mine."""
    from tidegate.exact import say as number

    least = float(best.wishes.min_support)
    lost = [str(k) for k in _mined(best) if best.sigma(k) > least / 2]
    if not lost:
        return [f"A support of {number(100 * least)}% is above twice the standard deviation for all these sizes."]
    return [
        f"For itemsets of {' and '.join(lost)} items, a support of {number(100 * least)}% is lost in the noise. More clients are needed."
    ]


def _say_profile(profile: Profile) -> None:
    for size, names in profile.exempted.items():
        say(f"Exempt in baskets of {size}, because already more probable than the breach level: {', '.join(names)}.")
    if profile.longer:
        say(f"{100 * float(profile.longer):.1f}% of the sample's baskets are larger and not covered by the design.")


def as_json(best: Design) -> dict[str, Any]:
    """Return the design as JSON values; probabilities are exact fractions."""
    return {
        "items": best.wishes.items,
        "clients": best.wishes.clients,
        "plans": [
            {
                "size": designed.plan.size,
                "share": float(designed.share),
                "insert": str(designed.plan.insert),
                "keep": [str(probability) for probability in designed.plan.keep],
                "breach": float(designed.risk.worst.after),
                "look": str(designed.risk.worst.look),
                "epsilon": _finite(designed.risk.loss.epsilon),
                "epsilon_one_item_replaced": _finite(designed.risk.loss.epsilon_one_replaced),
            }
            for designed in best.sizes
        ],
        "sigma": {k: best.sigma(k) for k in _mined(best)},
        "cut_and_paste_sigma": {k: _finite(best.rival_sigma(k)) for k in _mined(best)},
    }


def _finite(number: float) -> float | None:
    """Return None for infinity, which JSON does not have: there is no limit."""
    return number if math.isfinite(number) else None


def _optional(text: str | None, name: str) -> Fraction | None:
    return None if text is None else _number(text, name)


def _number(text: str, name: str) -> Fraction:
    from tidegate.exact import exact

    try:
        value = exact(text.strip())
    except (TypeError, ValueError):
        value = Fraction(-1)
    if value < 0:
        raise Unsupported(f"`--{name}` must contain numbers of 0 or more.", EXAMPLE)
    return value
