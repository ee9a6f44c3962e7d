"""Attacks that try to break each promise, with a confidence bound.

observers.py   RELEASE: who tries to name the sensitive group from the released records
watching.py    simulated data sets, and what leaves of them under a control
auc.py         how well scores tell sensitive groups from ordinary ones, with an interval
"""

from tidegate.audit.observers import OBSERVERS, Observation, as_text, observe, survey

__all__ = ["OBSERVERS", "Observation", "as_text", "observe", "survey"]
