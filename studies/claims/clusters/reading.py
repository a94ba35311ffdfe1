"""Read the evidence of `clusters` for the rules that share it."""

from rankfall import Threshold
from studies.claims.clusters.names import GROUPS

ONE = Threshold(1.5, "below", GROUPS, "V = 1, in the end")
