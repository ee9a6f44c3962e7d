"""Sessions: one data set under one policy, on this machine or served by another.

local.py      a policy, a table and a ledger
remote.py     the same verbs over HTTP, imported by `tidegate.connect`
http.py       requests to a service
"""

from tidegate.session.local import Session, open_session

__all__ = ["Session", "open_session"]
