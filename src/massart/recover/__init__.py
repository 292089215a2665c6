"""The driver: sample, propose, verify on all rows, grow; and the models that it takes."""

from massart.recover.driver import Recovery, recover
from massart.recover.model import LINEAR, Model, through

__all__ = ["LINEAR", "Model", "Recovery", "recover", "through"]
