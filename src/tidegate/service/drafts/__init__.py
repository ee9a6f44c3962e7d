"""Drafts: unfinished data sets of the console's wizard, from a file or a table to a served policy.

store.py         drafts in the service's folder                sources.py      uploads, files of the folder, databases
columns.py       fields of columns as attributes of a policy   policy.py       the policy of a draft, and its problems
promise.py       what a promise means, in words and numbers    simulation.py   typical queries and their accuracy
publication.py   the step from a draft to a served data set    notation.py     decimal commas and other ways to write values

A draft stores what its owner typed, and the names and types of columns. It never contains a value of a row.
"""
