"""How good synthetic tables are beside the original: for the data holder, or paid for on the ledger.

run.py          the procedure: `quality_of`            result.py       what was found, as values and as JSON
codes.py        rows as codes of the policy            cells.py        public cells, and groups for pairs
separation.py   told apart by a tree                   logistic.py     told apart by logistic regression
margins.py      columns one by one                     pairs.py        columns in pairs
formula.py      "income ~ age + sex"                   regression.py   its coefficients, original beside synthetic
combine.py      several tables together                report.py       how to read each number; the page and the text
charts.py       the charts                             private.py      one number for analysts, charged on the ledger
"""

from tidegate.synthesize.quality.private import PaidQuality, private_quality
from tidegate.synthesize.quality.result import Quality
from tidegate.synthesize.quality.run import quality_of

__all__ = ["PaidQuality", "Quality", "private_quality", "quality_of"]
