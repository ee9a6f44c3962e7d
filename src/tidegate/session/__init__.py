"""Sessions: one data set under one policy, on this machine or served by another.

local.py      a policy, a table and a ledger
remote.py     the same verbs over HTTP, imported by `tidegate.connect`
http.py       requests to a service
address.py    where the ledger of a policy is
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.extras import late_names

if TYPE_CHECKING:
    from tidegate.session.local import Session, open_session
else:  # the address of a ledger needs no session
    __getattr__ = late_names(__name__, {"Session": "local", "open_session": "local"})

__all__ = ["Session", "open_session"]
