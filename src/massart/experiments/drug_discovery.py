"""The drug-discovery set of Figure 2(b): where it comes from, and what a right file looks like.

Olier et al. 2018 curated it from ChEMBL (CC BY-SA); the file is the one of Sever (Diakonikolas et al. 2019). It has
3085 rows for training, not the 3084 of the paper's text. The package does not contain it.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from massart.rows import FloatArray

URL = "https://raw.githubusercontent.com/hoonose/sever/4ade68a4ec1a9f944514593abbdec34c31d927a6/linreg/data/qsar.mat"
SHA256 = "b3cabe8fd388f5d44d6675e32b061fa4b134f64c1ac0c781d3313ef92653dd72"
FILE_NAME = "drug_discovery_qsar.mat"
VARIABLE = "MASSART_DRUG_DATA"
"""Environment variable that may hold the path of the file."""

SHAPES = {"X_train": (3085, 410), "y_train": (3085, 1), "X_test": (1000, 410), "y_test": (1000, 1)}
_TIMEOUT = 30.0  # seconds
_LARGEST = 10_000_000  # bytes, a hundred times the file


@dataclass(frozen=True, slots=True, eq=False)
class DrugDiscovery:
    """Binary fingerprints of molecules and their activities, for training and for testing."""

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray


def find(given: Path | None, folder: Path) -> Path:
    """Return the path of a file that was checked: the given one, the environment's, or one in a folder.

    It is downloaded into the folder if it is not there. ValueError says in one line what is wrong, and what helps.
    """
    named = given if given is not None else os.environ.get(VARIABLE)
    if named is not None:
        check(_content(Path(named)), str(named))
        return Path(named).resolve()
    path = folder / FILE_NAME
    if not path.exists():
        content = _download()
        check(content, URL)
        beside = path.with_name(f".{FILE_NAME}.{os.getpid()}")
        beside.write_bytes(content)
        beside.replace(path)
    check(_content(path), str(path))
    return path.resolve()


def check(content: bytes, name: str) -> None:
    """Refuse a file that is not byte for byte the known one."""
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{name} is not the drug-discovery file: its SHA-256 starts with {found[:12]}, not with {SHA256[:12]}"
        )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read the drug-discovery file {path}: {error.strerror}") from error


def _download() -> bytes:
    try:
        with urllib.request.urlopen(URL, timeout=_TIMEOUT) as answer:
            return bytes(answer.read(_LARGEST))
    except (OSError, urllib.error.URLError) as error:
        raise ValueError(
            f"fig2b needs the drug-discovery file, and {URL} cannot be read ({error}): name a copy with --data FILE or "
            f"in {VARIABLE}, or ask for the other figures by name"
        ) from error


@cache
def load(path: str) -> DrugDiscovery:
    """Read the file, once in a process; ValueError if it is no MATLAB file, or has other variables or shapes."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        variables = loadmat(path, variable_names=list(SHAPES))
    except (ValueError, TypeError, NotImplementedError, OSError, MatReadError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is not a MATLAB file (version 5): {reason}") from error
    for name, shape in SHAPES.items():
        if name not in variables:
            raise ValueError(f"{path} has no variable {name}")
        if variables[name].shape != shape:
            raise ValueError(f"{name} in {path} must have shape {shape}, got {variables[name].shape}")
    X, y, X_test, y_test = (np.ascontiguousarray(variables[name], dtype=np.float64) for name in SHAPES)
    return DrugDiscovery(X, y.ravel(), X_test, y_test.ravel())
