"""Names that are now in `massart.paper`; they work here for one release, and warn when they are used."""

from massart.moved import forwarding

_NAMES = (
    *("Adversary", "Concept", "Corruption", "ErrorVector", "MassartNoise", "ObliviousNoise", "Predicate", "Simulation"),
    *("constant", "decoy", "far_constant", "flip", "gaussian", "gross", "high_leverage", "idle", "massart_rate"),
    *("negate", "paper_adversary", "paper_mixture", "paper_weights", "scale", "simulate_oblivious", "where", "zero"),
)

__getattr__ = forwarding(
    __name__,
    {
        **{name: f"massart.paper:{name}" for name in _NAMES},
        "linear": "massart.paper:linear_labels",
        "relu": "massart.paper:relu_labels",
    },
)
