"""The paper's experiments, Figures 1(a), 1(b), 2(a) and 2(b), and what lies beyond them.

One :class:`~massart.experiments.experiment.Experiment` a figure: frozen settings, a method that runs one trial and
gives tidy rows, and one that draws rows and runs nothing. :mod:`massart.experiments.reproduce` runs them, in parallel
and with a journal, and writes tables, pictures and a page.
"""
