"""The HTTP service: an API for analysts, a console for the data holder, a form for respondents.

settings.py     configuration                        app.py            the application and its lifespan
access/         tokens, roles, rate limits; access/permissions.py is the only table of addresses and roles
middleware.py   limits on size and depth, response headers, one log line, no traceback
datasets.py     the data sets that are served        jobs.py           work that takes longer than a request
routes/         one file per part of the API         pages/            the console, built on the same functions
errors.py       the JSON shape of every error
logs.py, metrics.py   facts about requests, never values
"""

from tidegate.extras import require

require("service", "Serving over HTTP")
