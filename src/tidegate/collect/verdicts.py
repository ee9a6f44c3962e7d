"""The response to submitted reports: one verdict for each. The service sends it, remote clients and the form read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from tidegate.collect.validation import REPLAYED


class Verdict(BaseModel):
    """The verdict on the report at index `place` of a batch."""

    place: int = Field(ge=0)
    verdict: Literal["accepted", "known", "refused"] = Field(
        description="accepted: it was received and counts, at once or with a later batch. known: a report with its id was received before; it counts once. refused: it does not count."
    )
    reason: str | None = Field(description="Why it does not count now; null for an accepted report.")


class SubmittedReports(BaseModel):
    """The result of a batch. A report is received if its verdict is `accepted` or `known`, and only then."""

    batch: str = Field(description="The name of the batch; empty while its reports wait for the next flush.")
    accepted: int = Field(ge=0)
    again: bool = Field(description="This batch was submitted before; nothing was done now.")
    verdicts: list[Verdict]
    refused: dict[str, int] = Field(description="The number of reports by reason, `known` ones included.")
    entry: str = Field(description="The hash of the ledger entry; empty if there is none.")
    reasons: list[tuple[int, str]] = Field(description="Index and reason of each report that was not accepted.")

    @classmethod
    def of(cls, reasons: Sequence[str | None], *, batch: str, entry: str, again: bool) -> SubmittedReports:
        """Build the response from the reason of each report (None: accepted)."""
        numbered = list(enumerate(reasons))
        return cls(
            batch=batch,
            accepted=sum(reason is None for reason in reasons),
            again=again,
            verdicts=[Verdict(place=index, verdict=verdict_of(reason), reason=reason) for index, reason in numbered],
            refused=dict(Counter(reason for reason in reasons if reason is not None).most_common()),
            entry=entry,
            reasons=[(index, reason) for index, reason in numbered if reason is not None],
        )

    def all_reasons(self) -> list[str | None]:
        """Return the reason of each report, as `of` accepts them."""
        return [verdict.reason for verdict in self.verdicts]


def verdict_of(reason: str | None) -> Literal["accepted", "known", "refused"]:
    """Return the verdict for a reason."""
    if reason is None:
        return "accepted"
    return "known" if reason == REPLAYED else "refused"
