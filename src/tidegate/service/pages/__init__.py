"""The console: each page is a template over what the API tells; its JSON twin is that address of the API.

frame.py   the frame of every page, and refusals as pages      first.py   sign in, overview, forms, files
asking.py  a question and what it costs; history                ledger.py  entries in words, verified
access.py  tokens                                               releasing.py   desk, own record
collecting.py   collections, the adviser, what reports say
synthesizing.py   budget, run, tables, quality                risk.py    the risk lab
"""
