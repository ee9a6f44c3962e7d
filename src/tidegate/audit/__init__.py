"""Attacks that try to break each promise, with a confidence bound.

`audit` runs the attacks that a policy calls for (run.py) and returns a report (report.py) of findings (finding.py). Counts
become bounds in bounds.py, and simulated data sets come from fake_data.py.

answers/: an informed adversary who knows every unit but one, the best guess on average, the loss that answers alone prove,
overlapping queries, time.
releases/: every released record tested again, and observers who guess the sensitive group.
collections/: what single reports reveal, repeated reports, and forged ones.
syntheses/ and leaks.py: which of two neighboring tables was used, membership, and original values in files.
tampering.py: changes to the ledger.
"""

from tidegate.audit.finding import Finding
from tidegate.audit.releases.observers import OBSERVERS, Observation, as_text, observe, survey
from tidegate.audit.report import Audit
from tidegate.audit.run import audit

__all__ = ["OBSERVERS", "Audit", "Finding", "Observation", "as_text", "audit", "observe", "survey"]
