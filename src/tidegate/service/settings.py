"""How a service is set up: frozen values, the same in every process that serves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """`policies` are files. One ledger keeps everything of a service: the one given, else the first policy's."""

    policies: tuple[str, ...] = ()
    ledger: str = ""
    secure: bool = False  # cookies over https only; off on loopback
    sign_in_hours: float = 12.0

    largest_body: int = 64 * 1024
    largest_batch: int = 16 * 1024 * 1024  # of randomized reports
    deepest_json: int = 32
    most_headers: int = 64
    largest_headers: int = 16 * 1024
    patience: float = 30.0  # seconds for a body to arrive

    caller_rate: float = 200.0  # requests a second of one token
    caller_burst: float = 400.0
    address_rate: float = 50.0  # requests a second without a token, from one address
    address_burst: float = 200.0
    wrong_rate: float = 0.5  # tokens a second that open nothing, from one address
    wrong_burst: float = 10.0

    threads: int = 16  # engines and databases block; so many requests at once
    run_jobs: bool = True
    job_beat: float = 1.0  # seconds between two signs of life of a job
    job_patience: float = 20.0  # seconds of silence after which another process takes a job

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        content: dict[str, Any] = json.loads(text)
        return cls(**{**content, "policies": tuple(content["policies"])})
