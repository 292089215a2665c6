"""The paper's experiments, Figures 1(a), 1(b), 2(a) and 2(b), and what lies beyond them.

One module a figure: a frozen config, a function that runs one trial and gives tidy rows, a pure plot function, and an
:class:`~massart.experiments.experiment.Experiment` that ties them together. :mod:`massart.experiments.reproduce` runs
them, in parallel and with a journal, and writes tables, pictures and a page.
"""
