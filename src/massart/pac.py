"""Old home of Appendix B, now :mod:`massart.paper.pac`, and of the certified learner, :mod:`massart.recover.pac`."""

from __future__ import annotations

from massart.moved import forwarding

__getattr__ = forwarding(
    __name__,
    {
        "OutlierRemoval": "massart.paper.pac:OutlierRemoval",
        "OutlierStatus": "massart.paper.pac:OutlierStatus",
        "PACFormula": "massart.recover.pac:PACFormula",
        "PACPiece": "massart.recover.pac:PACPiece",
        "PACStatus": "massart.recover.pac:PACStatus",
        "learn_pac": "massart.recover.pac:learn_pac",
        "remove_outliers": "massart.paper.pac:remove_outliers",
    },
)
