"""The command line: results on stdout, messages on stderr.

Exit status 0 when a formula was found that more than half of the rows follow, 1 when not, 2 for bad input, with one
line that says what is wrong. Commands import what they need when they run, so that ``massart --help`` is quick.
"""

from massart.cli.app import run

__all__ = ["run"]
