GAP = "how much more often the first item's label is said than the middle one's, by layers"
ENDS = "how much more often the first item's label is said than the last one's, by layers"
RIGHT = "share of right labels, by layers"
