"""Configuration of the documentation: ``sphinx-build -W -b html docs docs/_build``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import massart
from massart import __version__

sys.path.insert(0, str(Path(__file__).parent))

import commands
import pictures
import statements
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.ext.autosummary import autosummary_toc
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

project = "massart"
author = "massart contributors"
copyright = "2026, massart contributors"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "myst_parser",  # the changelog and the security policy are Markdown
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery", "examples/*.py", "examples/*.ipynb"]
templates_path = ["templates"]
default_role = "code"  # in docstrings, `name` is a parameter

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    # scikit-learn makes the first, with its own references; the others are among the attributes of their class
    "exclude-members": "set_fit_request, set_score_request, get_metadata_routing, set_output, "
    "covariance_, weights_, wrong_rows_",
}
autodoc_typehints = "none"  # the numpydoc sections give types in words
napoleon_use_ivar = True  # fields of dataclasses are documented once, in their class
napoleon_use_rtype = False
suppress_warnings = [
    "ref.python",  # fields of dataclasses of the same name are no ambiguous references
    "myst.header",  # the changelog and the policy are parts of a page, which has a title
]

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",  # every example runs
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "min_reported_time": 1e9,  # times of a busy machine say nothing
    "show_signature": False,
    "remove_config_comments": True,
}

html_theme = "furo"
html_title = f"massart {__version__}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_copy_source = False


def setup(app: Sphinx) -> None:
    """Draw the pictures of the pages, and let attributes keep the underscore that they end in."""
    pictures.draw_all(Path(__file__).parent / "pictures")
    app.connect("autodoc-process-docstring", _own_words, priority=800)  # behind napoleon
    app.connect("autodoc-process-docstring", _keep_names, priority=900)
    app.connect("autodoc-process-docstring", _name_the_paper, priority=900)
    app.add_directive("statements", Statements)
    app.add_directive("commands", Commands)
    app.connect("missing-reference", _at_the_top)
    app.connect("doctree-read", _leave_names_out, priority=100)  # before toctrees are collected


def _own_words(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Say of a constant or an alias what stands below it where it is made, not what its type says of itself."""
    if what != "data":
        return
    package, _, short = name.rpartition(".")
    lines.clear()
    homes = [name for name in sys.modules if name.startswith(f"{package}.") or name == package]
    for module in homes:
        lines[:] = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", short), lines)


def _keep_names(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Else ``:ivar coef_:`` is a reference to "coef", and the first word of ``:ivar low, high:`` a type."""
    for k, line in enumerate(lines):
        if found := re.match(r":(ivar|vartype) ([\w, ]+):", line):
            names = re.sub(r"_(?=,|$)", r"\\_", found[2].replace(", ", ","))
            lines[k] = f":{found[1]} {names}:{line[found.end() :]}"


def _name_the_paper(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """``Paper: Algorithm 1. Tests: ...`` is a paragraph of its own, with a link to the statement."""
    for k in reversed(range(len(lines))):
        if claim := statements.read(lines[k]):
            lines[k : k + 1] = ["", statements.sentence(claim), ""]


class Commands(SphinxDirective):
    """The commands and their options, read from the program."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        sections = nodes.section()
        sections.document = self.state.document
        nested_parse_with_titles(self.state, StringList(list(commands.page()), "commands"), sections)
        return sections.children


class Statements(SphinxDirective):
    """The table of the paper's statements, read from the docstrings."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        table = nodes.container()
        self.state.nested_parse(StringList(statements.table(), "docstrings"), self.content_offset, table)
        return table.children


def _at_the_top(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """``massart.paper.decompose`` has its page as ``massart.decompose``, and ``ellipsoid`` in its own package."""
    target = node.get("reftarget", "")
    module, _, name = target.rpartition(".")
    if node.get("refdomain") != "py" or not module.startswith("massart"):
        return None
    homes = ["massart"] if name in dir(massart) else ["massart.cutting_plane", "massart.isotropy"]
    for home in homes:
        if module != home:
            address = (env, node["refdoc"], app.builder, node["reftype"], f"{home}.{name}", node, content)
            if found := env.get_domain("py").resolve_xref(*address):
                return found
    return None


def _leave_names_out(app: Sphinx, doctree: Any) -> None:
    """Two hundred names in the sidebar of every page serve nobody, and take most of the time of a build."""
    for listed in list(doctree.findall(autosummary_toc)):
        listed.parent.remove(listed)
