"""The state of a collection as JSON values: what is counted and waits, until when, and what a person reveals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.accounting.later_reader import LaterReader
    from tidegate.collect.survey import Survey


def state_of(survey: Survey, reader: LaterReader | None, *, now: datetime | None = None) -> dict[str, Any]:
    """Return the state of a collection. The number of waiting reports is rounded down to the policy's minimum."""
    collection, loss, moment = survey.collection, survey.respondent_loss, now or datetime.now(UTC)
    poll, rule = collection.poll, collection.batches
    return {
        "collection": collection.name,
        "version": collection.version,
        "repeats": collection.repeats,
        "questions": {name: str(question) for name, question in collection.questions.items()},
        "reports": survey.reports,
        "clients": collection.clients,
        "closed": survey.closed,
        "waiting": survey.waiting,
        "at_least": rule.at_least,
        "batch": str(rule),
        "title": dict(poll.title) if poll else {"en": collection.name},
        "access": poll.access if poll else "",
        "closes": time_of(poll.closes) if poll else None,
        "next_count": next_count(survey, moment),
        "status": status_of(survey, moment),
        "estimable": survey.estimable,
        "baskets": list(survey.baskets),
        "gives": loss.to_dict(),
        "says": str(loss),
        "later_reader": None if reader is None else dict(reader.to_dict()),
    }


def next_count(survey: Survey, now: datetime) -> str | None:
    """Return when waiting reports are counted next: at the next slot of the schedule, or at the close; None if unknown."""
    rule, poll = survey.collection.batches, survey.collection.poll
    if survey.closed:
        return None
    slot = rule.slot(now)
    moments = [slot + timedelta(seconds=rule.every)] if slot is not None and rule.every else []
    if poll is not None and poll.closes > now:
        moments.append(poll.closes)
    return time_of(min(moments)) if moments else None


def status_of(survey: Survey, now: datetime) -> str:
    """Return how many reports were counted, and when the next ones are, as a sentence."""
    reports, waiting, rule = survey.reports, survey.waiting, survey.collection.batches
    counted = "1 report was counted" if reports == 1 else f"{reports:,} reports were counted"
    if survey.closed:
        return f"Closed: {counted if reports else 'no report was counted'}."
    start = f"Open: {counted} so far" if reports else "Open: no report was counted yet"
    start += f", {waiting:,} or more wait" if waiting else ""
    moment = next_count(survey, now)
    if moment is None:
        return f"{start}; the rest is counted at the close."
    poll = survey.collection.poll
    if poll is not None and time_of(poll.closes) == moment:
        return f"{start}; the next count is at the close, on {time_text(moment)}."
    return f"{start}; the next count is on {time_text(moment)} if at least {rule.at_least:,} wait."


def time_of(moment: datetime) -> str:
    """Return a time as ISO 8601 text in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def time_text(moment: str) -> str:
    """Return a time of ISO 8601 text for people: 1 Dec 2026, 17:00 UTC."""
    return f"{datetime.fromisoformat(moment).strftime('%-d %b %Y, %H:%M')} UTC"
