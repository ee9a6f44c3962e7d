"""The durable record: append-only entries, chained by hash. Totals follow from the entries.

ledger.py    accounts, charges, results          verify.py    recomputed hashes, links, prices and totals
entry.py     one entry and its hash              export.py    the whole ledger for an auditor
store.py     SQLite file or Postgres             explain.py   entries as sentences
file.py      completeness of a SQLite file       backup.py, restore.py   copies
genesis.py   entry 0, commitments to secrets     sources.py   answers from which others follow
shares.py    totals by user                      tokens.py, jobs.py   the service's data in the same database
"""

from tidegate.ledger.backup import Copied, backup
from tidegate.ledger.charge import Charge
from tidegate.ledger.entry import Entry
from tidegate.ledger.explain import explain_entries, moment
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
    "explain_entries",
    "export_lines",
    "moment",
    "restore",
    "verify",
    "verify_export",
]
