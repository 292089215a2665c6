"""The command line: results on stdout, messages on stderr.

Exit status 0 when a formula was found that stands (PROVEN, CONFIRMED or MAJORITY), 1 when not, 2 for bad input, with
one line that says what is wrong, 3 for more wrong rows than allowed; 2 goes over 3, and 3 over 1. The module of a
command is imported when it is asked for, so that ``massart --help`` is quick.
"""

from massart.cli.app import run

__all__ = ["run"]
