"""Counts and times of requests, for Prometheus. Labels are templates of addresses, methods, statuses and error codes."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

TIMES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The measures of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        about: Any = {"registry": self._registry, "namespace": "tidegate"}
        self._requests = Counter("requests", "Requests by address and status", ["method", "route", "status"], **about)
        self._seconds = Histogram("request_seconds", "Time taken", ["route"], buckets=TIMES, **about)
        self._refusals = Counter("refusals", "Refusals by the code of their error", ["code"], **about)
        self._reports = Counter("reports", "Randomized reports by what became of them", ["outcome"], **about)
        (
            self._reports.labels("taken"),
            self._reports.labels("refused"),
        )  # there from the start: a new line would have a time
        self._at_work = Gauge("jobs_at_work", "Syntheses that this process is at", **about)

    def request(self, method: str, route: str, status: int, seconds: float, refused: str) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if refused:
            self._refusals.labels(refused).inc()

    def reports(self, *, taken: int = 0, refused: int = 0) -> None:
        """Count reports. Those taken are counted when their batch is: a counter that rises with each report has its time."""
        self._reports.labels("taken").inc(taken)
        self._reports.labels("refused").inc(refused)

    def at_work(self, many: int) -> None:
        self._at_work.set(many)

    def text(self) -> bytes:
        return bytes(generate_latest(self._registry))
