"""The promise that released records hide which group is sensitive: every group releases the same share of each value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal

from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.exact import Number, exact, plain, say
from tidegate.policy.concealment import column_names

AT_MOST, MARGIN, SMALLEST = Fraction(3, 4), Fraction(2), 100
ANSWERS = ("refused", "allowed")
ONE_SELECTION = (
    "mix",
    "at_most",
    "among",
    "margin",
    "smallest",
    "answers",
)  # the same in all hiding promises of a policy


@dataclass(frozen=True)
class Hiding:
    """Released records do not show in which groups (`about`) the values of `reveals` are unusual.

    When the owner opens the selection, the same share of every value is chosen in every hidden group. The chosen records
    can be released; the others never are.

    Args:
        mix: The share of every group that is released with each value, chosen without looking at the table; in the order of
            the cells of all revealed columns of the policy (the last changes fastest). Or "table": computed once, when the
            selection opens, by a rule that treats all groups alike.
        at_most: The largest part of the records of one value in one group that can be released. It limits what a refused
            person who knows their own value learns: their odds change by a factor of at most 1 / (1 - at_most).
        among: "all": every group releases the same shares. A number k: the sensitive groups, named privately when the
            selection opens, hide among k times as many groups; the other groups are released in full.
        margin: With mix = "table": how many standard errors the mix stays below the smallest share in the samples.
        smallest: Groups with fewer records release nothing.
        answers: "refused": answers and synthetic tables that combine a column of `reveals` with one of `about` are refused.
            "allowed": they are not, and the promise covers released records alone.
    """

    reveals: tuple[str, ...]
    about: tuple[str, ...]
    mix: tuple[Fraction, ...] | Literal["table"]
    releases: tuple[str, ...] = ()
    at_most: Fraction = AT_MOST
    among: int | Literal["all"] = "all"
    margin: Fraction = MARGIN
    smallest: int = SMALLEST
    answers: Literal["refused", "allowed"] = "refused"

    def __init__(
        self,
        *,
        reveals: Sequence[str] | str,
        about: Sequence[str] | str,
        mix: Sequence[Number] | Literal["table"],
        releases: Sequence[str] = (),
        at_most: Number = AT_MOST,
        among: int | Literal["all"] = "all",
        margin: Number = MARGIN,
        smallest: int = SMALLEST,
        answers: Literal["refused", "allowed"] = "refused",
    ) -> None:
        values_by_name = {
            "reveals": column_names(reveals),
            "about": column_names(about),
            "mix": mix if isinstance(mix, str) else tuple(exact(share) for share in mix),
            "releases": tuple(releases) or (*column_names(reveals), *column_names(about)),
            "at_most": exact(at_most),
            "among": among,
            "margin": exact(margin),
            "smallest": smallest,
            "answers": answers,
        }
        for name, value in values_by_name.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        if not self.reveals or not self.about or set(self.reveals) & set(self.about):
            raise PolicyUnreadable(
                "A hiding promise requires columns in `reveals` and other columns in `about`; no column can be in both."
            )
        if isinstance(self.mix, str) and self.mix != "table":
            raise PolicyUnreadable(
                f'`mix` must be "table" or a list of shares, not "{self.mix}".',
                'Write mix = "table", or the share of every group that is released with each value.',
            )
        if not isinstance(self.mix, str) and (not self.mix or min(self.mix) < 0 or not 0 < sum(self.mix) <= 1):
            raise PolicyUnreadable(
                f"The shares of `mix` must be 0 or more and add up to more than 0 and at most 1, not {say(sum(self.mix, Fraction(0)))}.",
                "Each is the part of a whole group that is released with one value.",
            )
        if not 0 < self.at_most < 1:
            raise PolicyUnreadable(
                f"`at_most` must be above 0 and below 1, not {say(self.at_most)}.",
                "At 1, one refused person who knows their own value could rule out a group.",
            )
        if self.among != "all" and (isinstance(self.among, bool) or not isinstance(self.among, int) or self.among < 2):
            raise PolicyUnreadable(f'`among` must be "all" or a whole number of at least 2, not {self.among}.')
        if self.margin < 0:
            raise PolicyUnreadable(f"`margin` must be 0 or more, not {say(self.margin)}.")
        if isinstance(self.smallest, bool) or not isinstance(self.smallest, int) or self.smallest < 1:
            raise PolicyUnreadable(f"`smallest` must be a whole number of at least 1, not {self.smallest}.")
        if self.answers not in ANSWERS:
            raise PolicyUnreadable(f"`answers` must be one of {', '.join(ANSWERS)}.")

    @property
    def shows(self) -> str:
        """Numbers are always released as bins: inside a bin the composition of groups is not equal."""
        return "bins"

    @property
    def refusal_factor(self) -> Fraction:
        """The largest factor by which a refusal changes the odds of a person who knows their own value."""
        return 1 / (1 - self.at_most)

    def __str__(self) -> str:
        about, values = ", ".join(self.about), ", ".join(self.reveals)
        hidden = f"every group of {about} releases"
        if self.among != "all":
            hidden = f"sensitive groups of {about} and {self.among - 1} times as many others release"
        mix = "shares of the table" if self.mix == "table" else "declared shares"
        return f"{hidden} the same share of each value of {values} ({mix})"

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as its section of the policy file, without most default values."""
        lists = {name: list(getattr(self, name)) for name in ("reveals", "about", "releases")}
        more = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in (*lists, "mix")}
        written = {name: _plain(value) for name, value in more.items() if value != _DEFAULTS[name]}
        return {
            **lists,
            "mix": self.mix if isinstance(self.mix, str) else [plain(share) for share in self.mix],
            **written,
        }


_DEFAULTS = {f.name: f.default for f in fields(Hiding)}


@dataclass(frozen=True)
class JointHiding:
    """All hiding promises of a policy as one: values are those of all revealed columns, groups those of all others.

    Records leave with their keys and in one order, so an observer joins the desks. Equal composition of the joined groups
    implies it for the groups of each promise.
    """

    reveals: tuple[str, ...]
    about: tuple[str, ...]
    promise: Hiding  # the settings of the selection, the same in all promises


def join_hidings(hidings: Mapping[str, Hiding]) -> JointHiding:
    """Return the joint promise. Columns are in the order of the promises' names, because the order of a file can change."""
    promises = [promise for _, promise in sorted(hidings.items())]
    reveals = tuple(dict.fromkeys(column for promise in promises for column in promise.reveals))
    about = tuple(dict.fromkeys(column for promise in promises for column in promise.about))
    return JointHiding(reveals, about, promises[0])


def check_hidings(hidings: Mapping[str, Hiding], *, has_concealments: bool) -> None:
    """Refuse hiding promises that cannot share one selection, or that stand beside concealment promises."""
    if has_concealments:
        raise PolicyUnreadable(
            "A policy cannot have both hiding and concealment promises: records that a test releases would undo the hiding.",
            "Keep one of [promise.hiding] and [promise.concealment].",
        )
    first, *others = hidings.items()
    for name, promise in others:
        for setting in ONE_SELECTION:
            if getattr(promise, setting) != getattr(first[1], setting):
                raise PolicyUnreadable(
                    f"[promise.hiding.{first[0]}] and [promise.hiding.{name}] have different values of `{setting}`.",
                    "All hiding promises of a data set share one selection, so their settings must be the same.",
                )
    joint = join_hidings(hidings)
    both = [column for column in joint.reveals if column in joint.about]
    if both:
        raise PolicyUnreadable(
            f'"{both[0]}" is in `reveals` of one hiding promise and in `about` of another.',
            "A column is either released as a value or as a group.",
        )


def refuse_combination(hidings: Mapping[str, Hiding], columns: Iterable[str], what: str) -> None:
    """Refuse an answer or a synthetic table that would show the values of a hidden group.

    Differential privacy protects persons, not the composition of a group: a noisy count of values by group shows which
    group is unusual at any useful epsilon.
    """
    if not hidings:
        return
    joint, named = join_hidings(hidings), set(columns)
    revealed = [column for column in joint.reveals if column in named]
    groups = [column for column in joint.about if column in named]
    if joint.promise.answers == "allowed" or not revealed or not groups:
        return
    raise Unsupported(
        f'{what} combines "{revealed[0]}" with "{groups[0]}". A hiding promise covers these columns, and the result would show '
        "which group has unusual values.",
        f'Use only one of them, or set answers = "allowed" in [promise.hiding.{next(iter(hidings))}]: the promise then covers '
        "released records alone.",
    )


def _plain(value: Any) -> Any:
    return plain(value) if isinstance(value, Fraction) else value
