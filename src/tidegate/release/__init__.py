"""RELEASE: true records, one by one, held back while they would betray a group.

request.py     what is asked and what came of it          mechanisms/   the tests, one file each
plan.py        baseline and critical values               _kernels.py   the compiled decision loop
gate.py        one promise at work                        controller.py several promises at once
desk.py        the durable desk: decision, queue, entry   exactly.py    near-ties in as many digits as it takes
"""
