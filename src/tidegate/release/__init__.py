"""RELEASE: true records, one by one, held back while they would reveal too much about a group.

desk.py      the object a session hands out          plan.py       baseline and critical values of one promise
request.py   which records, for whom                 gate.py       one promise at work, and several at once
run.py       check, catch up, decide, commit         _kernels.py   the compiled decision loop
result.py    released, deferred or refused           exact_tests.py  near-ties in as many digits as it takes
open.py      fix the plans in the ledger             mechanisms/   the tests, one file each
layout.py    how a record looks when it leaves       tracks.py, charts.py  measures over time, plotted
"""
