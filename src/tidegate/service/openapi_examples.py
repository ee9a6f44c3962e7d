"""Example responses for the OpenAPI description. A test compares each with a real response."""

from __future__ import annotations

from typing import Any

from tidegate.service.access.permissions import API, TABLE

_HASH = "2a70ccbff1b1f9fd772101570cd43e72ed5fbf23771a16c5624702308ecd4fce"
_AT = "2026-11-16T10:02:41.845+00:00"
_EVENT = {"kind": "discrete-laplace/1", "sensitivity": "1", "scale": "10"}
_METER = {"age": {"before": 0.014, "after": 0.015, "ceiling": 0.05}}
_PRICE = {"pure": "0.1", "zcdp": "0.005", "z": "0.00125"}
_JOB = {
    "id": "01a1e2a2e230a3ded2cd",
    "dataset": "people",
    "who": "olga",
    "made": _AT,
    "state": "running",
    "kind": "synthesis",
    "progress": {"stage": "pairs", "done": 3, "of": 12},
    "says": "selecting pairs of columns and counting them with noise",
    "resumed": False,
    "attempts": 1,
    "seconds": 4.2,
    "problem": None,
    "entry": None,
    "asked": "1 table, epsilon 1",
    "wanted": {"epsilon": "1", "tables": 1},
}
_ACCOUNT = {
    "spent": "0.1",
    "left": "1.22",
    "ceiling": "1.32",
    "unit": "epsilon",
    "guarantee": "worst-case",
    "spent_by_unit": _PRICE,
    "epsilon_at_delta": 0.1,
    "epsilon_at_delta_limit": None,
    "identification": {"age": {"now": 0.015, "ceiling": 0.05}},
    "yes_no": {"now": 0.525, "ceiling": 0.79},
    "own": {"share": "0.5", "spent": "0.1", "left": "0.4"},
}
_DATASET = {
    "name": "people",
    "fingerprint": _HASH,
    "edition": "",
    "rows": 10000,
    "promise": "identification at most 0.05",
    "account": _ACCOUNT,
    "warnings": [],
    "desks": ["headquarters"],
    "collections": ["shoppers"],
    "polls": [],
    "only_polls": False,
}
_TOKEN = {
    "id": "0123456789abcdef",
    "role": "analyst",
    "name": "ana",
    "dataset": "people",
    "share": "0.5",
    "made": _AT,
    "expires": _AT,
    "revoked": None,
    "maker": "olga",
    "used": "2026-11-17",
    "method": "token",
    "identity": None,
}
_DESK, _SURVEY = "/data/{name}/desks/{promise}", "/data/{name}/collections/{collection}"
_SURVEYS = "/data/{name}/collections"
_RESULTS = {
    "collection": "shoppers",
    "version": 1,
    "fingerprint": _HASH,
    "holder": "",
    "title": {"en": "shoppers"},
    "languages": ["en"],
    "access": "",
    "confidence": 0.95,
    "closed": False,
    "closes": None,
    "reports": 1200,
    "waiting": 300,
    "next_count": "2026-11-17T00:00:00Z",
    "status": "Open: 1,200 reports were counted so far, 300 or more wait; the next count is on 17 Nov 2026, 00:00 UTC if ...",
    "epsilon": 2.0,
    "loss": "One person loses at most epsilon 2 (town 2), while the true values do not change; ...",
    "later_reader": None,
    "ledger": {"opened": {"number": 3, "hash": _HASH}, "counted": {"number": 9, "hash": _HASH}, "head": _HASH},
    "questions": [
        {
            "question": "town",
            "kind": "choice",
            "text": {"en": "town"},
            "operator": "randomized-response",
            "epsilon": 2.0,
            "reports": 1200,
            "confidence": 0.95,
            "too_few": None,
            "options": [
                {
                    "option": "north",
                    "label": {"en": "north"},
                    "share": 0.41,
                    "low": 0.37,
                    "high": 0.45,
                    "low_poisoned": 0.4,
                    "high_poisoned": 0.42,
                    "raw": 0.41,
                    "error": 0.019,
                }
            ],
            "mean": None,
            "differences": [
                {"first": "north", "second": "south", "difference": 0.12, "low": 0.04, "high": 0.2, "clear": True}
            ],
            "false_reports": {"assumed": 12, "first": "north", "second": "south", "decisive": 96},
            "sure": "each share is within 4 percentage points (95%, each by itself)",
            "warnings": [],
        }
    ],
    "warnings": [],
}
_READS = {
    "language": "en",
    "sentences_in": "en",
    "holder": "Works council, Example Ltd",
    "title": "Canteen",
    "purpose": "Plan the menu for spring",
    "questions": [
        {
            "question": "weekly",
            "text": "Do you eat here every week?",
            "options": ["Yes", "No"],
            "sentences": ["Of 100 people who mean “No”, about 17 send “Yes”. ...", "Your device rolls a die. ..."],
        }
    ],
}
_POLL_DRAFT = {
    "poll": "canteen",
    "section": '[poll.canteen]\nholder = "Works council, Example Ltd"\n...',
    "ask": None,
    "units": 1,
    "gives": {"questions": {"weekly": "1.609438"}, "in_all": "1.609438", "each_report": "1.609438"},
    "says": "one person loses at most epsilon 1.61, once (weekly 1.61)",
    "questions": [
        {
            "question": "weekly",
            "kind": "choice",
            "operator": "randomized-response",
            "epsilon": "1.609438",
            "says": "weekly by randomized-response with random 1/3",
            "error": 0.034,
            "margin": 0.066,
            "too_large": False,
        }
    ],
    "reads": [_READS],
    "settings": [
        {
            "random": "1/3",
            "problem": None,
            "loss": 1.609438,
            "ask": None,
            "error": 0.034,
            "margin": 0.066,
            "sentences": _READS["questions"][0]["sentences"],  # type: ignore[index]
        }
    ],
    "problem": None,
    "codes": {"Command line": "cat >> polls.toml <<'END' ..."},
}
_LISTED_POLL = {
    "poll": "canteen",
    "version": 1,
    "holder": "Works council, Example Ltd",
    "title": {"en": "Canteen"},
    "purpose": {"en": "Plan the menu for spring"},
    "languages": ["en"],
    "access": "invited",
    "closes": "2026-12-01T17:00:00Z",
    "questions": [{"question": "weekly", "text": {"en": "Do you eat here every week?"}}],
    "form": "https://gate.example.org/forms/polls/canteen",
    "only_here": False,
    "state": "open",
    "status": "Open: no report was counted yet, 200 or more wait; the next count is at the close, on 1 Dec 2026, 17:00 UTC.",
    "reports": 0,
    "waiting": 200,
    "at_least": 100,
    "clients": 250,
    "problem": None,
}
_SELECTION = {
    "epoch": 1,
    "opened": "2026-11-17",
    "entry": 9,
    "share": 0.375,
    "mix": ["1/4", "1/8"],
    "at_most": "3/4",
    "groups": ["L1", "L2"],
    "values": ["18-27", "28-37"],
    "sizes": [200, 160],
    "hidden": [0, 1],
    "quotas": [[50, 25], [40, 20]],
}
_COLLECTED = {
    "collection": "shoppers",
    "version": 1,
    "repeats": "memoised",
    "questions": {"age": "age by square-wave with epsilon 2"},
    "reports": 1200,
    "clients": 5000,
    "closed": False,
    "waiting": 300,
    "at_least": 100,
    "batch": "reports are counted every 1 day if at least 100 wait, and at the close",
    "title": {"en": "shoppers"},
    "access": "",
    "closes": None,
    "next_count": "2026-11-17T00:00:00Z",
    "status": "Open: 1,200 reports were counted so far, 300 or more wait; the next count is on 17 Nov 2026, 00:00 UTC if ...",
    "estimable": ["age"],
    "baskets": [],
    "gives": {"questions": {"age": "2"}, "in_all": "2", "each_report": "2"},
    "says": "one person loses at most epsilon 2 (age 2), while the true values do not change; a changed value adds its part again",
    "later_reader": {
        "local": "2",
        "reports": 400,
        "epsilon": 0.5201,
        "delta": 0.000025,
        "says": "Each report has a local epsilon of 2; ... A later reader of ledger and results learns at most epsilon 0.521 ...",
    },
}

_EXAMPLES: dict[tuple[str, str], dict[str, Any]] = {
    ("GET", "/health"): {"status": "ok"},
    ("GET", "/ready"): {
        "status": "ready",
        "datasets": 1,
        "witnesses": [{"address": "/mnt/witness/people.checkpoint", "entries": 7, "problem": ""}],
    },
    ("GET", "/me"): {"role": "analyst", "name": "ana", "dataset": "people", "share": "0.5"},
    ("GET", "/tokens"): {"tokens": [_TOKEN], "next": None},
    ("POST", "/tokens"): {
        "token": "tg_0123456789abcdef_...",
        **_TOKEN,
        "code": {"Python": 'service.post("/v1/tokens", ...)', "Command line": "tidegate token make people.toml ..."},
    },
    ("GET", "/sessions"): {
        "sessions": [
            {
                "id": "0123456789abcdef",
                "name": "ana",
                "role": "analyst",
                "token": "0123456789abcdef",
                "method": "token",
                "started": _AT,
                "seen": _AT,
                "expires": _AT,
                "own": False,
            }
        ],
        "next": None,
    },
    ("GET", "/data"): {"datasets": [_DATASET]},
    ("POST", "/data/{name}/previews"): {
        "expected": [
            {
                "question": "the number of rows",
                "query": {"ask": "count"},
                "error": 30.0,
                "caution": "",
                "free": "",
                "price": "0.1",
                "event": _EVENT,
            },
        ],
        "cost": "0.1",
        "spent": "0",
        "ceiling": "1.32",
        "policy": _HASH,
        "left": "1.32",
        "left_after": "1.22",
        "fits": True,
        "unit": "epsilon",
        "cost_by_unit": _PRICE,
        "spent_by_unit": {"pure": "0", "zcdp": "0", "z": "0"},
        "epsilon_at_delta": 0.1,
        "guarantee": "worst-case",
        "confidence": 0.95,
        "identification": {"age": {"now": 0.014, "after": 0.015, "alone": 0.015, "ceiling": 0.05}},
        "yes_no": {"now": 0.5, "after": 0.525, "alone": 0.525, "ceiling": 0.79},
        "code": {"Python": "remote.answer(tg.count(), epsilon=0.1)", "Command line": "tidegate answer people.toml ..."},
    },
    ("POST", "/data/{name}/answers"): {
        "question": "the number of rows",
        "query": {"ask": "count"},
        "statistic": "count",
        "rows": [{"count": 10000, "low": 9977, "high": 10000, "noisy": 10007}],
        "comparison": None,
        "caution": "",
        "event": _EVENT,
        "result": {"cells": 10007},
        "cost": "0.1",
        "spent": "0.1",
        "left": "1.22",
        "ceiling": "1.32",
        "policy": _HASH,
        "unit": "epsilon",
        "cost_by_unit": _PRICE,
        "spent_by_unit": _PRICE,
        "epsilon_at_delta": 0.1,
        "guarantee": "worst-case",
        "identification": _METER,
        "yes_no": {"before": 0.5, "after": 0.525, "ceiling": 0.79},
        "entry": _HASH,
        "stored": None,
        "source": "unchanged",
    },
    ("POST", "/data/{name}/derivations"): {
        "derivations": [
            {
                "question": "the number of rows",
                "derived": {
                    "question": "the number of rows",
                    "query": {"ask": "count"},
                    "values": 10000,
                    "low": 9938,
                    "high": 10000,
                    "noisy": 10007,
                    "error_95": 31.0,
                    "from": [2],
                    "cost": "0",
                    "rows": [{"value": 10000, "low": 9938, "high": 10000, "noisy": 10007}],
                    "says": "the number of rows: 10,000, within 31, 95%, from entry 2     cost 0",
                },
            }
        ],
        "policy": _HASH,
    },
    ("GET", "/data/{name}/history"): {
        "questions": [
            {
                "number": 2,
                "at": _AT,
                "cost": "0.1",
                "says": "ana queried the number of rows: 0.1 charged, 0.1 of 1.32 spent",
                "unit": "epsilon",
                "who": "ana",
                "asked": "the number of rows",
                "question": {"verb": "answer", "asks": [{"ask": "count"}]},
                "event": _EVENT,
                "again": {"questions": [{"ask": "count"}], "epsilon": "0.1"},
                "link": f"{API}/data/people/stored-answers/{_HASH}",
            }
        ],
        "next": None,
    },
    ("GET", "/data/{name}/selections"): {"selections": [_SELECTION]},
    ("POST", "/data/{name}/selections"): _SELECTION,
    ("GET", f"{_DESK}/queue"): {
        "requests": [
            {
                "number": 15,
                "key": "1234",
                "since": _AT,
                "group": "L2",
                "obstacles": [
                    {
                        "promise": "headquarters",
                        "test": "kullback-leibler",
                        "group": "L2",
                        "value": 0.5,
                        "critical": 0.4,
                        "excess": 0.25,
                    }
                ],
            }
        ],
        "waiting": 1,
        "next": None,
    },
    ("POST", f"{_DESK}/requests"): {"outcomes": [{"outcome": "deferred", "number": 15, "ahead": 13}]},
    ("POST", f"{_DESK}/status"): {
        "outcome": "released",
        "number": 15,
        "record": {"name": "1234", "age": "18-27", "location": "L2"},
    },
    ("GET", f"{_DESK}/released"): {
        "records": [{"name": "1234", "age": "18-27", "location": "L2"}],
        "cursor": 1,
        "next": None,
    },
    ("GET", _SURVEYS): {
        "collections": [
            {
                "collection": "shoppers",
                "version": 1,
                "questions": {"age": "age by square-wave with epsilon 2"},
                "says": "one person loses at most epsilon 2 (age 2), while the true values do not change; a changed value adds its part again",
                "clients": 5000,
                "is_poll": False,
                "reports": 1200,
                "closed": False,
                "problem": None,
            }
        ],
        "attributes": [
            {
                "attribute": "age",
                "kind": "integer",
                "says": "45 whole numbers from 16 to 60",
                "values": 45,
                "ordered": True,
            }
        ],
        "may_add": True,
    },
    ("POST", f"{_SURVEYS}/drafts"): {
        "collection": "visitors",
        "section": '[collection.visitors]\nquestions.town = { attribute = "town", operator = "subset", epsilon = 1 }\n',
        "gives": {"questions": {"town": "1"}, "in_all": "1", "each_report": "1"},
        "says": "one person loses at most epsilon 1 (town 1), while the true values do not change; a changed value adds its part again",
        "each": {"town": "town by subset with epsilon 1: no report changes the odds by more than a factor of 2.72"},
        "codes": {
            "Python": "remote.make_collection(...)",
            "Command line": "tidegate collect define people.toml visitors",
        },
    },
    ("POST", f"{_SURVEY}/closing"): {**_COLLECTED, "closed": True},
    ("POST", f"{_SURVEY}/reports"): {
        "batch": "",
        "accepted": 1,
        "again": False,
        "verdicts": [
            {"place": 0, "verdict": "accepted", "reason": None},
            {"place": 1, "verdict": "refused", "reason": "it answers another version; this is version 2"},
        ],
        "refused": {"it answers another version; this is version 2": 1},
        "entry": "",
        "reasons": [[1, "it answers another version; this is version 2"]],
    },
    ("POST", f"{_SURVEY}/invitations"): {"codes": ["34VE-HJ0A-HS9C-AN81-9YQV-10EF-D8"]},
    ("POST", f"{_SURVEY}/tokens"): {"signature": "rkpq7d..."},
    ("GET", f"{_SURVEY}/state"): _COLLECTED,
    ("GET", f"{_SURVEY}/results"): _RESULTS,
    ("GET", "/data/{name}/polls"): {"polls": [_LISTED_POLL], "may_add": True},
    ("POST", "/data/{name}/polls/drafts"): _POLL_DRAFT,
    ("POST", "/data/{name}/syntheses"): {**_JOB, "state": "waiting"},
    ("GET", "/data/{name}/syntheses"): {"syntheses": [_JOB], "next": None},
    ("GET", "/data/{name}/syntheses/{job}"): _JOB,
    ("POST", "/risk/code"): {
        "Python": "from fractions import Fraction\n...",
        "Command line": "tidegate risk convert --worlds 99 --rho 0.1",
    },
    ("GET", "/ledger"): {
        "accounts": [
            {
                "account": "people",
                "spent": "0.1",
                "left": "1.22",
                "ceiling": "1.32",
                "policy": _HASH,
                "unit": "epsilon",
            }
        ],
        "head": _HASH,
    },
    ("GET", "/ledger/verification"): {
        "holds": True,
        "entries": 7,
        "head": _HASH,
        "spent": {"people": "0.1"},
        "problems": [],
        "notes": [],
    },
    ("GET", "/risk/conversion"): {
        "worlds": "99",
        "rho": "0.1",
        "epsilon": "2.387742901334352536837447134499",
        "yes_no": "0.915887850467",
        "says": "A probability of identification of at most 0.1 among 99 possible values allows a total loss of epsilon 2.39 ...",
        "readings": {
            "worst-case": {
                "epsilon": "2.387742901334352536837447134499",
                "yes_no": 0.916,
                "epsilon_at_delta": 2.388,
                "delta": 0.0,
                "errors": [{"answers": 1, "error": 0.592}],
            },
            "average": {
                "z": "0.3961481492885125134782675449",
                "yes_no": 0.912,
                "epsilon_at_delta": 10.17,
                "delta": 1e-6,
                "errors": [{"answers": 1, "error": 0.562}],
            },
        },
        "guarantee": "worst-case",
        "within": 0,
        "blind_guess": 0.0101,
    },
    ("GET", "/risk/meaning"): {
        "rho": "0.015",
        "worlds": "99",
        "one_in": 66.7,
        "blind_guess": 0.0101,
        "epsilon": "0.400376038600693104243385516104",
        "odds": 1.49,
        "yes_no": 0.599,
        "says": [
            "An adversary who knows all rows except one, and all answers, identifies the missing one with a probability of at most 0.015."
        ],
        "known": [
            {
                "rho": "0.015",
                "what": "the probability that the safe harbor rule of HIPAA appears to intend",
                "source": "...",
            }
        ],
    },
    ("GET", "/risk/curve"): {
        "worlds": "99",
        "blind_guess": 0.0101,
        "points": [{"epsilon": 0.0, "rho": 0.0101, "yes_no": 0.5}, {"epsilon": 2.3877, "rho": 0.1, "yes_no": 0.916}],
    },
}

_EXAMPLES["POST", "/data/{name}/quotes"] = {
    **_EXAMPLES["POST", "/data/{name}/previews"],
    "quote": "eyJkYXRhc2V0Ijoi...",
    "expires": _AT,
    "price": "0.1",
    "answered_before": None,
    "link": f"{API}/data/people/stored-answers/{_HASH}",
}
_ITEM = {
    "id": "0198f3c2a1b45d6e7f80",
    "name": "Women by town",
    "owner": "ana",
    "shared": True,
    "own": False,
    "made": _AT,
    "changed": _AT,
}
_REQUEST = {"sql": "SELECT town, COUNT(*) FROM people WHERE sex = 'female' GROUP BY town", "epsilon": "0.1"}
_EXAMPLES["GET", "/data/{name}/questions"] = {"questions": [{**_ITEM, "request": _REQUEST}]}
_EXAMPLES["GET", "/data/{name}/dashboards"] = {
    "dashboards": [{**_ITEM, "name": "Women", "questions": ["0198f3c2a1b45d6e7f80"]}]
}
EXAMPLES = {
    (method, path if (method, path) in TABLE else f"{API}{path}"): example
    for (method, path), example in _EXAMPLES.items()
}
