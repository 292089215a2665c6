"""Moved to :mod:`massart.paper` and :class:`massart.MassartRegressor`; these names work for one release, and warn."""

from massart.moved import forwarding

__getattr__ = forwarding(__name__, {"recover_linear": "massart.recover:recover_matrix"})
