"""HTML: one template environment, and the templates of reports that need no script and no network."""

from tidegate.html.render import add_templates, render

__all__ = ["add_templates", "render"]
