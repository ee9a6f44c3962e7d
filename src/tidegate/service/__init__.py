"""The service: a desk for the data holder, an API for analysts, a form for respondents.

settings.py   how it is set up                     app.py        all of it put together
access/       who comes in, and to what: the one table of addresses and roles is access/table.py
doorway.py    what every request passes first: size, depth, headers, a log line, no traceback
holdings.py   the data sets that are served        jobs.py       what takes longer than a request
routes/       one file for each part of the API    pages/        the console over the same functions
problems.py   one shape of errors
logs.py, metrics.py   what is told of requests: never a value
"""

from tidegate.extras import require

require("service", "Serving over HTTP")
