"""How the pages become a site: ``make docs``.

blocks.py      fenced blocks of code and what their first lines say about running them
pages.py       which pages there are, in which order
rendering.py   Markdown to HTML: anchors, links, highlighted code
site.py        the folder of HTML pages, needing no other host
reference.py   the pages of docs/reference, from docstrings, signatures and the help of commands
gallery.py     the pages of docs/gallery, from what `tidegate reproduce NAME --json` printed
"""
