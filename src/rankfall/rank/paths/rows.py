"""Selection of sums of paths, of the whole network, and of chance."""

PATHS = {"kind": "path"}
WHOLE = {"kind": "whole"}
CHANCE = {"kind": "chance"}
RECOMPUTED = {**PATHS, "evaluation": "recomputed"}  # each path with its own attention
LEAST = 0.05  # accuracy over chance below which shares would be noise
