"""How good synthetic tables are, beside the original: for the data holder's eyes, or paid for on the ledger.

measure.py      the story: `quality_of`               result.py       what was found, as JSON, as words, as a page
coding.py       rows as codes of the policy            cells.py        public cells, and groups for pairs
trees.py        told apart by a tree                   propensity.py   told apart by logistic regression
margins.py      columns one by one                     pairs.py        columns in pairs
formula.py      "income ~ age + sex"                   regression.py   its coefficients, original beside synthetic
combining.py    what several tables say together       reading.py      how to read each number
svg.py, pictures.py, page.py   one page that needs nothing else
private.py      one number that may be shown to analysts, charged on the ledger
"""

from tidegate.synthesize.quality.private import PaidQuality, private_quality
from tidegate.synthesize.quality.result import Quality
from tidegate.synthesize.quality.run import quality_of

__all__ = ["PaidQuality", "Quality", "private_quality", "quality_of"]
