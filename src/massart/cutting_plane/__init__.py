"""Cutting planes: find a point of an unknown convex set by asking a separation oracle."""

from massart.cutting_plane.analytic import analytic_center
from massart.cutting_plane.ellipsoid import ellipsoid
from massart.cutting_plane.queries import Cuts, Halfspace, Method, Oracle, Status

__all__ = ["Cuts", "Halfspace", "Method", "Oracle", "Status", "analytic_center", "ellipsoid"]
