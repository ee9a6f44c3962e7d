"""The console. Each page is a template over the values of the API; its JSON version is that address of the API.

layout.py        the layout of every page, and error pages     overview.py   sign in, overview, forms, static files
answers.py       queries, their cost, history                  ledger.py     entries and verification
access.py        tokens                                        releases.py   release desks, a respondent's own record
collections.py   collections, the adviser, estimates           risk.py       the risk lab
syntheses.py     budget, progress, tables, quality
"""
