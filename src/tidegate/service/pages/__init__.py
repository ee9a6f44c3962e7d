"""The console: each page is a template over what the API tells; its JSON twin is that address of the API.

frame.py   the frame of every page, and refusals as pages      first.py   sign in, overview, forms, files
"""
