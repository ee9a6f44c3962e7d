"""ANSWER: noisy statistics whose privacy is stated as a probability of identification.

request.py   what is asked     run.py   check, charge, run, record     mechanisms/   one file each     result.py   what is given back
"""

from tidegate.answer.request import Count, count
from tidegate.answer.result import Answer, Preview
from tidegate.answer.run import answer, preview

__all__ = ["Answer", "Count", "Preview", "answer", "count", "preview"]
