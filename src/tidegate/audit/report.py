"""The report of an audit: sentences, JSON, and one HTML page."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.audit.finding import Finding
from tidegate.errors import Unsupported
from tidegate.frames import Row, Rows
from tidegate.html import render

FORMAT = "tidegate-audit/1"
FILES = ("report.html", "report.json")

# What no attack here covers. Readers must not take silence for safety.
UNTRIED: dict[str, tuple[str, ...]] = {
    "": (
        "Whether the policy is right: its universes, priors, populations and baselines are taken as it states them.",
        "Adversaries with access to the table itself, the ledger's database, or a privileged account of the service.",
        "Data sets about the same persons that no policy declares (`shares_persons_with`): their losses add up.",
        "Attacks that are not implemented here. A bound below the promise is not a proof; the proofs are in the tests.",
    ),
    "answer": (
        "Tables as large as yours, and engines other than the default one: attacks simulate small tables on DuckDB.",
        "How long answers take over a network, or under load.",
        "The operating system's random bits.",
        'Noise calibrated to runs of neighboring values (calibration = "tight" with a window above 1).',
        "SQL expressions and distinct values: columns are queried as they are.",
    ),
    "release": (
        "Under concealment, observers who see requests and refusals; under either promise, observers who know records from elsewhere.",
        "Profiles of a sensitive group other than the one named in the finding.",
    ),
    "collect": ("Devices that do not belong to the person, and the form in a browser: the Python client is attacked.",),
    "synthesize": (
        "Your own models, if a step loses more than it states.",
        "Tables that are requested with `delta`: those with an epsilon or with Z are attacked.",
        "Neighbors with different numbers of rows of one person: simulated ones have equally many.",
    ),
    "ledger": (
        "Changes below the ledger's own tables, by the database server or its disk.",
        "Adversaries who can write both to the database and to the place where the head is noted, or to the witness.",
        "Witnesses of your own ledger, and those that are not files: a copy gets a witness of its own.",
    ),
}

TITLES = {
    "answer": (
        "Answers",
        "Statistics with noise: an adversary who knows all units but one must not identify the missing value.",
    ),
    "release": ("Released records", "True records, not released while they would be evidence about a group."),
    "collect": ("Collected reports", "What one person's randomized report reveals."),
    "synthesize": ("Synthetic tables", "Tables drawn from noisy counts: no single row must be visible in them."),
    "ledger": ("The ledger", "The record of all releases: any change to it must be detected."),
}
WORDS = {"broken": "BROKEN", "held": "held", "observed": "observed, not promised", "not tried": "not tried"}
READS = (
    "Held: the attack proved no more than the promise allows. That is not a proof that every attack fails.",
    "Broken: the attack proved more than the promise allows, and correct code is accused so rarely that the code, or its "
    "reading of the policy, is to blame. Keep this file, release nothing more, and report it.",
    "Observed: not covered by a promise; reported for information.",
    "Bars show what was proven; the line is the promise. Bounds are lower bounds: the true values can be higher.",
)


@dataclass(frozen=True)
class Audit(Rows):
    """The findings of one run.

    Args:
        alpha: The probability with which all sampled findings together accuse correct code.
        seed: Reproduces the simulated data sets and most of the noise. Answers through the front door use system randomness.
    """

    name: str
    fingerprint: str
    when: str
    findings: tuple[Finding, ...]
    alpha: float
    seed: int
    seconds: float
    verbs: tuple[str, ...] = ()

    @property
    def broken(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.broken)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        count = sum(finding.verdict == "held" for finding in self.findings)
        attacks = "1 attack" if count == 1 else f"{count} attacks"
        if self.broken:
            noun = "promise is" if len(self.broken) == 1 else "promises are"
            return f"{len(self.broken)} {noun} broken; {attacks} found nothing."
        if count and {finding.verb for finding in self.findings} == {"ledger"}:
            return f"The ledger withstood {attacks}; no other promise was attacked."
        return f"No promise was broken by {attacks}." if count else "Nothing here could be attacked."

    @property
    def chance(self) -> float:
        """The sum of the alphas of all findings: at most `alpha`."""
        return sum(finding.alpha or 0.0 for finding in self.findings)

    def untried(self) -> list[str]:
        """Return what was not tried: by any attack, and in this run for the reasons that findings state."""
        notes = [text for verb in ("", *self.verbs) for text in UNTRIED.get(verb, ())]
        alike: dict[tuple[str, str], list[str]] = {}
        for finding in self.findings:
            if finding.verdict == "not tried":
                alike.setdefault((finding.verb, finding.says.partition(": ")[0].rstrip(".")), []).append(finding.attack)
        return [*(f"{verb}, {why}: {', '.join(names)}." for (verb, why), names in alike.items()), *notes]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        from tidegate import __version__

        return {
            "format": FORMAT,
            "dataset": self.name,
            "policy": self.fingerprint,
            "tidegate": __version__,
            "when": self.when,
            "seconds": round(self.seconds, 1),
            "seed": self.seed,
            "alpha": self.alpha,
            "verdict": self.verdict,
            "broken": len(self.broken),
            "findings": [finding.to_dict() for finding in self.findings],
            "not_tried": self.untried(),
        }

    def rows(self) -> list[Row]:
        """Return one dictionary per finding."""
        return [finding.to_dict() for finding in self.findings]

    def _kinds(self) -> dict[str, type]:
        return dict.fromkeys(("bound", "promised", "alpha"), float)

    def lines(self) -> list[str]:
        """Return the report as sentences."""
        findings = [
            f"{finding.verdict:>9}  {finding.verb}, {finding.attack}: {finding.says}"
            for finding in self.findings
            if finding.verdict != "not tried"
        ]
        wrong = f"Correct code is accused with probability at most {self.alpha:g}. {self.seconds:.0f} seconds, seed {self.seed}."
        return [
            *findings,
            "",
            "What was not tried",
            *(f"   {text}" for text in self.untried()),
            "",
            self.verdict,
            wrong,
        ]

    def html(self) -> str:
        """Return the report as one self-contained page."""
        from tidegate import __version__

        view = {
            "title": f"Audit of {self.name}",
            "audit": self,
            "version": __version__,
            "words": WORDS,
            "sections": [self._section(verb) for verb in TITLES],
            "notes": {"What was not tried": self.untried(), "How to read this": READS},
        }
        return render("report/audit.html", view)

    def _section(self, verb: str) -> dict[str, Any]:
        """Return one verb for the page: findings counted by verdict, and those that were tried, broken ones first."""
        title, about = TITLES[verb]
        own = [finding for finding in self.findings if finding.verb == verb]
        counts: Counter[str] = Counter(finding.verdict for finding in own)
        tried = sorted(
            (finding for finding in own if finding.verdict != "not tried"), key=lambda finding: not finding.broken
        )
        numbers = ", ".join(f"{counts[kind]} {word}" for kind, word in WORDS.items() if counts[kind])
        return {"verb": verb, "title": title, "about": about, "counts": numbers, "findings": tried}

    def save(self, folder: Path) -> tuple[Path, ...]:
        """Write report.html and report.json into a folder."""
        texts = (self.html(), json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n")
        problem = ""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in zip(FILES, texts, strict=True):
                (folder / name).write_text(text, "utf-8", newline="")
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise Unsupported(
                f'The report cannot be written to "{folder}": {problem}.', "Choose another folder with --out."
            )
        return tuple(folder / name for name in FILES)
