"""A brief search for a rule that says the same of all rows: what one column of a table is of the others.

Such a rule has no cases, hinges or steps, and most rows follow it. So most of them show in three regressions: of the
labels on all columns (sums), of the labels on the logarithms of the columns, and of the logarithms of the labels on
these (products of powers). If most rows agree with one of these, then forward selection finds the few columns that the
rule needs, on the rows that agree. What is left are sums of products and quotients. These are grown from a constant, as
:mod:`~massart.rules.grow.growing` does, but only while each term brings the rule a good deal nearer: a rule that is
exact in the end does not get there in small steps, and most columns follow no rule at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from massart.rows import FloatArray
from massart.rules.columns import Columns
from massart.rules.grow.evidence import (
    focus_of,
    grown_terms,
    pool,
    score_test,
    votes,
    weights_of,
)
from massart.rules.grow.fit import Fit, Labels
from massart.rules.grow.forms import shortest_form
from massart.rules.grow.growing import written_rule
from massart.rules.grow.sample import Product, Sample
from massart.rules.grow.settings import Settings
from massart.rules.grow.simplify import pruned
from massart.rules.grow.tidy import as_product
from massart.rules.terms import Term

BRIEF = Settings(number_bits=12.0, rows=300, beam=1, steps=8, focus=12, tests=5, votes=3, levels=0, windows=0)
"""An identity holds in most rows, so that it is seen soon or not at all."""

_NEARLY_ALL = 0.95  # share of the rows that agree with all columns, with which few of them agree
_STEP = 0.05  # of the score, that a term brings at least


def arithmetic(
    columns: Columns, y: FloatArray, half_unit: float, rng: np.random.Generator, settings: Settings = BRIEF
) -> list[tuple[tuple[Term, ...], FloatArray]]:
    """Return the terms and coefficients, the constant last, of rules that most rows follow, the shortest first."""
    with threadpool_limits(1, user_api="blas"):
        sample = Sample(columns, y, half_unit, settings.levels)
        labels = Labels.of(sample, "identity", settings)
        found: list[Fit] = []
        for way in (_sum, _sum_of_logarithms, _product, _grown):
            if way is _grown and any(fit.total <= 2 * settings.number_bits for fit in found):
                break  # no other rule is much shorter
            one = way(labels, rng)
            if one is not None and 2 * one.n_agree > len(sample) and any(one.terms):
                found.append(one)
        return [written_rule(shortest_form(fit)) for fit in sorted(found, key=lambda fit: fit.total)]


def _sum(labels: Labels, rng: np.random.Generator) -> Fit | None:
    return _short(labels, [(one,) for one in _nearest(labels)], rng)


def _sum_of_logarithms(labels: Labels, rng: np.random.Generator) -> Fit | None:
    return _short(labels, _logarithms(labels), rng)


def _product(labels: Labels, rng: np.random.Generator) -> Fit | None:
    sample = labels.sample
    if 2 * np.count_nonzero(sample.y > 0) <= len(sample):
        return None
    found = _short(Labels.of(sample, "log", labels.settings), _logarithms(labels), rng)
    return None if found is None else as_product(found)


def _logarithms(labels: Labels) -> list[Product]:
    return [(Term("log", (one,)),) for one in _nearest(labels) if labels.sample.is_positive(one)]


def _nearest(labels: Labels) -> list[Term]:
    """Return the columns that go with the labels most: as many as leave three rows for each."""
    return focus_of(labels, labels.y, len(labels.sample) // 3)


def _short(labels: Labels, terms: Sequence[Product], rng: np.random.Generator) -> Fit | None:
    """Return a rule of few of the terms, if most rows follow one of all of them.

    The column that goes with the labels most is not always in the shortest rule: others may be the first one, too.
    """
    if not terms:
        return None
    Z = labels.sample.matrix(terms)
    rows = labels.follows(Z)
    few = labels.only(rows)
    n_chance = np.count_nonzero(labels.shuffled(rng).follows(Z))  # of two values, either is near
    start = few.fit([()]) if 2 * few.n > len(rows) and few.n > n_chance + np.sqrt(len(rows)) else None
    if start is None:
        return None
    found: list[Fit] = []
    for first in np.argsort(-score_test(start, Z, weights_of(start)), kind="stable")[: labels.settings.tests].tolist():
        most = min((len(fit.terms) for fit in found), default=labels.settings.steps)
        best = few.fit([(), terms[first]], cold=True)
        for _ in range(most - 2):
            if best is None or best.n_agree == few.n:
                break
            j = int(np.argmax(score_test(best, Z, weights_of(best))))
            best = few.fit([*best.terms, terms[j]], [*best.coef, 0.0], cold=True)
        reached = best is not None and best.n_agree > _NEARLY_ALL * few.n
        whole = labels.fit(best.terms, best.coef, near=rows) if best is not None and reached else None
        found += [] if whole is None else [pruned(whole)]
    return min(found, key=lambda fit: fit.total, default=None)


def _grown(labels: Labels, rng: np.random.Generator) -> Fit | None:
    """Return a sum of products, quotients and powers, grown from a constant."""
    settings = labels.settings
    plain = pool(labels, focus_of(labels, labels.y, settings.focus))
    Z, best = labels.sample.matrix(plain), labels.fit([()], cold=True)
    for _ in range(settings.steps):
        if best is None:
            break
        grown = grown_terms(best)
        candidates, values = [*plain, *grown], np.hstack([Z, labels.sample.matrix(grown)])
        values = np.where(np.isfinite(values).all(axis=0), values, 0.0)
        tested, voted = score_test(best, values, weights_of(best)), votes(best, values, rng, settings.pairs)
        saved = -0.5 * labels.n * np.log2(np.maximum(1 - tested, 1e-300))  # if what is left were normal
        likely = [j for j in np.argsort(-tested, kind="stable")[: settings.tests] if saved[j] > _STEP / 2 * best.total]
        likely += [j for j in np.argsort(-voted, kind="stable")[: settings.votes] if voted[j] > _STEP * settings.pairs]
        made = [
            labels.fit([*best.terms, candidates[j]], [*best.coef, 0.0], cold=True, near=labels.usable & ~best.agree)
            for j in dict.fromkeys(likely)
            if candidates[j] not in best.terms
        ]
        following = min(
            (fit for fit in made if fit is not None),
            key=lambda fit: (round(fit.total), sum(map(len, fit.terms))),
            default=best,
        )
        if following.total > (1 - _STEP) * best.total:
            break
        best = pruned(following)
    return best
