"""Canonical forms of public descriptions, and their fingerprints."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from decimal import Decimal
from typing import Any


def texts(value: Any) -> Any:
    """Return plain values with decimals, dates and times as text, so that every language writes the same digits."""
    if isinstance(value, dict):
        return {name: texts(item) for name, item in value.items()}
    if isinstance(value, list):
        return [texts(item) for item in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else value


def fingerprint_of(content: Any) -> str:
    """Return the SHA-256 of plain values in their canonical form."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
