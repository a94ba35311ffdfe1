"""Which rows of the table are of sums of paths, and which of what these are compared with."""

PATHS = {"kind": "path"}
WHOLE = {"kind": "whole"}
CHANCE = {"kind": "chance"}
RECOMPUTED = {**PATHS, "evaluation": "recomputed"}  # each path with its own attention
LEAST = 0.05  # above chance: a share of less is a share of noise
