"""Pages and scripts. Nothing here depends on HTTP, roles or data: a page is a template and its view.

render.py    renders a template and its view               assets.py    the files that pages load: styles, scripts
templates/   one file per page                             static/      styles and the console's scripts
client/      the browser's randomizer and its form         snippets/    code snippets of the console's actions
"""
