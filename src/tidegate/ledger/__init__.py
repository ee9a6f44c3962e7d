"""The durable record: append-only entries, chained by hash; totals follow from them.

ledger.py   accounts, charges, results        verify.py   hash, chain, price and add up again
entry.py    one line and its hash             export.py   all of it for an auditor
store.py    SQLite file or Postgres           words.py    entries as sentences
shares.py   what each name has spent          tokens.py, jobs.py   of the service, in the same database
"""

from tidegate.ledger.entry import Entry
from tidegate.ledger.export import export_lines, verify_export
from tidegate.ledger.ledger import Account, Ledger, Receipt
from tidegate.ledger.receipts import Charge
from tidegate.ledger.verify import Verdict, verify
from tidegate.ledger.words import moment, told

__all__ = [
    "Account",
    "Charge",
    "Entry",
    "Ledger",
    "Receipt",
    "Verdict",
    "export_lines",
    "moment",
    "told",
    "verify",
    "verify_export",
]
