"""Who comes in, and to what.

table.py        every address with the roles that it is for: the only place that says so
tokens.py       made, shown once, kept as slow hashes, found again at the same cost whether they are right or wrong
examples.py     what they answer, by example
callers.py      the caller of a request: a token's, a sign-in's, or the public
signing_in.py   the console's cookie          csrf.py   a change by cookie needs what only our own pages know
limits.py       how often                     gate.py   all of it, before a body is looked at
"""
