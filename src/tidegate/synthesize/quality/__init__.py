"""The quality of synthetic tables compared with the original: free for the data holder, or charged on the ledger.

run.py          the procedure: `quality_of`               result.py       the result as values and as JSON
codes.py        rows as codes of the policy               cells.py        public cells, and groups for pairs
separation.py   separation by a tree                      logistic.py     separation by logistic regression
margins.py      columns one by one                        pairs.py        columns in pairs
formula.py      "income ~ age + sex"                      regression.py   its coefficients, original and synthetic
combine.py      estimates from several tables             report.py       texts of the report; the page
charts.py       the charts                                private.py      distances for analysts, charged on the ledger
"""

from tidegate.synthesize.quality.private import PaidQuality, private_quality
from tidegate.synthesize.quality.result import Quality
from tidegate.synthesize.quality.run import quality_of

__all__ = ["PaidQuality", "Quality", "private_quality", "quality_of"]
