"""The durable record: append-only entries, chained by hash; totals follow from them.

ledger.py   accounts, charges, results        verify.py   hash, chain, price and add up again
entry.py    one line and its hash             export.py   all of it for an auditor
store.py    SQLite file or Postgres           words.py    entries as sentences
file.py     whether a SQLite file is whole    backup.py, restore.py   copies, the way back
genesis.py  entry 0, commitments to secrets   sources.py  answers that others follow from
shares.py   what each name has spent          tokens.py, jobs.py   of the service, in the same database
"""

from tidegate.ledger.backup import Copied, backup
from tidegate.ledger.charge import Charge
from tidegate.ledger.entry import Entry
from tidegate.ledger.explain import moment, told
from tidegate.ledger.export import export_lines, verify_export
from tidegate.ledger.ledger import Account, Ledger, Receipt
from tidegate.ledger.restore import restore
from tidegate.ledger.verify import Verdict, verify

__all__ = [
    "Account",
    "Charge",
    "Copied",
    "Entry",
    "Ledger",
    "Receipt",
    "Verdict",
    "backup",
    "export_lines",
    "moment",
    "restore",
    "told",
    "verify",
    "verify_export",
]
