r"""Growing a rule term by term.

A rule is :math:`y = f(\sum_j w_j t_j(x))`: a short sum of terms, each of them a product of factors (columns, powers,
conditions, hinges, rounded quotients), perhaps between two limits; or one product of factors, of which some are tables
of numbers by level. It is not looked for in a list. It is grown on some of the rows, the *search rows*:

1. **Start** from the plain columns, from a constant, from logarithms (products of powers), from a list of prices, or
   from the row before (:mod:`~massart.rules.grow.running`).
2. **Look** at the rows that do not agree, and let them vote for what is missing: a score test of several hundred
   candidates in one matrix product, votes of pairs of rows, sums by level (:mod:`~massart.rules.grow.evidence`),
   windows in which other coefficients hold (:mod:`~massart.rules.grow.windows`), and a second rule in these rows
   (:mod:`~massart.rules.grow.second`).
3. **Refit** the most promising changes by a robust regression that starts from the rule as it is, and keep what pays
   (:mod:`~massart.rules.grow.fit`). One score decides everything: the bits that the residuals take, and a price for
   each number. It falls long before a single row agrees, and that is what leads the way.
4. **Simplify**: leave out terms, merge levels, write levels as numbers, try limits
   (:mod:`~massart.rules.grow.simplify`). Go on from the two best rules until nothing pays.
5. **Write** it as its author would: of the forms that say the same, that which takes fewest bits
   (:mod:`~massart.rules.grow.written`), found by steps that rewrite a rule (:mod:`~massart.rules.grow.forms`,
   :mod:`~massart.rules.grow.cases`), with thresholds and factors in few digits (:mod:`~massart.rules.grow.tidy`).

All of this reads the labels of the search rows and no others. These are drawn by X, the number of rows and a seed, so
that the terms are fixed before a label of the other rows is looked at, and these can confirm the rule
(:func:`massart.recover.recover` with `seen`). Only coefficients are fitted again on all rows.
"""

from massart.rules.grow.arithmetic import BRIEF, arithmetic
from massart.rules.grow.growing import Grown, glance, grow
from massart.rules.grow.numbers import short_coefficients
from massart.rules.grow.settings import Settings

__all__ = ["BRIEF", "Grown", "Settings", "arithmetic", "glance", "grow", "short_coefficients"]
