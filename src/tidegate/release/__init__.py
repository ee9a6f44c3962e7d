"""RELEASE: true records, one by one; each waits while its release would reveal too much about a group.

desk.py      the object a session returns            plan.py       baseline and critical values of one promise
request.py   which records, for whom                 gate.py       the state of one promise, and of several
run.py       check, catch up, decide, commit         _kernels.py   the compiled decision loop
result.py    released, deferred or refused           exact_tests.py  near-ties in exact arithmetic
open.py      fix the plans in the ledger             mechanisms/   the tests, one file each
layout.py    the form of released records            tracks.py, charts.py  measures over time, plotted
"""
