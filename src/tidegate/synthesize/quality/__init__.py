"""The quality of synthetic tables: beside the original for the data holder, from the diary for everybody, or charged.

run.py          the procedure: `quality_of`               result.py       the result as values and as JSON
codes.py        rows as codes of the policy               columns.py      columns one by one, on public cells
pairs.py        columns in pairs                          dependencies.py columns that follow from another
separation.py   separation by boosted trees and a CART    ensemble.py     boosted trees
utility.py      predictions and range queries             combine.py      estimates from several tables
formula.py      "income ~ age + sex"                      regression.py   its coefficients, original and synthetic
text.py         the sentences, and text for a terminal    page.py         the page
charts.py       the charts                                private.py      distances for analysts, charged on the ledger
public.py       the report for everybody, from the diary
"""

from tidegate.synthesize.quality.private import PaidQuality, private_quality
from tidegate.synthesize.quality.public import PublicReport, public_report
from tidegate.synthesize.quality.result import Quality
from tidegate.synthesize.quality.run import quality_of

__all__ = ["PaidQuality", "PublicReport", "Quality", "private_quality", "public_report", "quality_of"]
