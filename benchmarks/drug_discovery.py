"""The drug-discovery set of the paper's Figure 2(b), where it is at hand."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from harness import MissingPeer, require  # isort: skip

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DrugDiscovery:
    """Rows and labels for training and for testing."""

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray


def drug_discovery() -> DrugDiscovery:
    """Load the file that MASSART_DRUG_DATA names, or the one in the shared folder beside the checkout."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data" / "drug_discovery_qsar.mat"
    path = Path(os.environ.get("MASSART_DRUG_DATA", default))
    if not path.exists():
        raise MissingPeer("drug_discovery_qsar.mat is not here; set MASSART_DRUG_DATA to its path")
    data = require("scipy.io").loadmat(path)
    parts = [np.ascontiguousarray(data[name], dtype=np.float64) for name in ("X_train", "y_train", "X_test", "y_test")]
    return DrugDiscovery(parts[0], parts[1].ravel(), parts[2], parts[3].ravel())
