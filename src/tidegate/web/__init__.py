"""Pages and scripts. Nothing here knows HTTP, roles or data: a page is a template and the view that it is given.

render.py    a template and its view, made into HTML       assets.py    what pages load: styles and scripts
templates/   one file for each page                        static/      styles, and the console's scripts
client/      the browser's randomizer and its form
"""
