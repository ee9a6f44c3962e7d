"""What the form of a poll shows before its scripts run: the language, its texts, and the label of who can learn what."""

from __future__ import annotations

from typing import Any

from tidegate.collect.polls.respondent_texts import form_texts, text_language
from tidegate.policy import Collection

LABELS = ("holder", "hacker", "court", "device", "server")  # rows of "Who can learn your answer?"
MOST_PREFERENCES = 20


def preferred_languages(accepted: str) -> list[str]:
    """Return the languages of an Accept-Language header, the most preferred first."""
    weighted = []
    for position, part in enumerate(accepted.split(",")[:MOST_PREFERENCES]):
        name, _, weight = part.partition(";q=")
        try:
            weighted.append((-float(weight or 1), position, name.strip()))
        except ValueError:
            continue
    return [name for _, _, name in sorted(weighted)]


def poll_view(collection: Collection, chosen: str, accepted: str) -> dict[str, Any]:
    """Return what the template needs besides the description, for the language of the link or else of the browser."""
    poll = collection.poll
    if poll is None:
        raise TypeError("The collection is not a poll.")
    preferences = [chosen, *preferred_languages(accepted)]
    exact = [name for name in preferences if name in poll.languages or name.partition("-")[0] in poll.languages]
    language = poll.language(exact[0] if exact else "")
    texts, holder = form_texts(language), collection.holder or collection.name
    rows = [(texts[f"label.{row}"], texts[f"label.{row}.what"]) for row in LABELS]
    return {
        "language": language,
        "page_language": text_language(language),
        "languages": [
            (code, form_texts(code)["language"] if text_language(code) == code else code) for code in poll.languages
        ],
        "texts": texts,
        "title": poll.text(poll.title, language),
        "purpose": poll.text(poll.purpose, language),
        "holder": holder,
        "closes": poll.closes,
        "label": [(reader.format(holder=holder), learns.format(holder=holder)) for reader, learns in rows],
    }
