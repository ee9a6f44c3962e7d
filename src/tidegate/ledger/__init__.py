"""The durable record: append-only entries, chained by hash. Totals follow from the entries.

ledger.py    accounts, charges, results          verify.py, replay.py     recomputed hashes, links, prices and totals
entry.py     one entry and its hash              explain.py               entries as sentences, and pages of them
chain.py     appends; entry 0, commitments       backup.py, restore.py    copies; the export for an auditor
store.py     SQLite file or Postgres             sources.py               answers from which others follow
file.py      completeness of a SQLite file       source_states.py         states of sources that answers describe
shares.py    totals by user                      release_book.py, collection_book.py   the entries of both verbs
queries.py   statements, built once              tokens.py, jobs.py, library.py   the service's data in the same database
remarks.py   entries that charge nothing         diaries.py               what unfinished syntheses have learned
"""

from tidegate.ledger.account import Account
from tidegate.ledger.backup import Copied, backup, export_lines, verify_export
from tidegate.ledger.charge import Charge
from tidegate.ledger.entry import Entry
from tidegate.ledger.explain import explain_entries, moment
from tidegate.ledger.ledger import Ledger, Receipt
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
