"""Authentication and authorization.

permissions.py   every address with its roles: the only such table
tokens.py        tokens: created, shown once, stored as slow hashes, verified in constant time
links.py         one-time sign-in links         oidc.py    accounts of an OpenID Connect provider, and groups.py their groups
activity.py      last requests of sessions, days of use, totals of refusals
callers.py       the caller of a request: from a token, a sign-in, or public
sessions.py      the console's cookie          csrf.py    CSRF tokens for requests with a cookie
rate_limits.py   token buckets                 guard.py   all checks, before a body is parsed
"""
