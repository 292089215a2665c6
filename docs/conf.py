"""Configuration of the documentation: ``sphinx-build -W -b html docs docs/_build``."""

from __future__ import annotations

from massart import __version__

project = "massart"
author = "massart contributors"
copyright = "2026, massart contributors"
version = release = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
default_role = "code"  # in docstrings, `name` is a parameter

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "show-inheritance": False,
    "exclude-members": "set_fit_request, set_score_request",  # scikit-learn makes them, with its own references
}
suppress_warnings = ["ref.python"]  # fields of dataclasses of the same name are no ambiguous references
autodoc_typehints = "none"  # the numpydoc sections give types in words
napoleon_use_ivar = True  # fields of dataclasses are documented once, in their class
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"massart {__version__}"
html_static_path: list[str] = []
