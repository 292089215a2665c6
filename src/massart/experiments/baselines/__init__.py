"""Methods to compare with: those of the paper, of this package, of other papers and of libraries.

>>> import numpy as np
>>> from massart.experiments.baselines import LINEAR
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((60, 4))
>>> y = X @ [3, 0, -1, 0.5]
>>> y[:6] += 100
>>> np.round(LINEAR["torrent"].fit(X, y, rng), 9) + 0.0
array([ 3. ,  0. , -1. ,  0.5])
"""

from massart.experiments.baselines.baseline import Baseline, Fit, missing_line
from massart.experiments.baselines.linear import LINEAR, algorithm_1, linear_given_rate, tuned_ridge
from massart.experiments.baselines.relu import RELU

__all__ = ["LINEAR", "RELU", "Baseline", "Fit", "algorithm_1", "missing_line", "linear_given_rate", "tuned_ridge"]
