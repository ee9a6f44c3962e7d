"""Attacks that try to break each promise, with a confidence bound.

run.py         all attacks that a policy calls for       report.py, page.py   what they found
finding.py     one finding                               bounds.py            what counts prove

ANSWER       informed.py, refused.py      who knows every unit but one (situations.py, laws.py, sampling.py)
             blackbox.py                  the loss that answers prove by themselves
             differencing.py, timing.py   overlapping questions, the same one again, the clock
             made.py, asking.py           made-up data sets, and how they are asked about
RELEASE      released.py                  every moment tested again; observers.py, watching.py, auc.py: who guesses
COLLECT      reports.py                   what single reports give away
SYNTHESIZE   membership.py                who was in the table
ledger       tampering.py                 changes behind our back
"""

from tidegate.audit.finding import Finding
from tidegate.audit.releases.observers import OBSERVERS, Observation, as_text, observe, survey
from tidegate.audit.report import Audit
from tidegate.audit.run import audit

__all__ = ["OBSERVERS", "Audit", "Finding", "Observation", "as_text", "audit", "observe", "survey"]
