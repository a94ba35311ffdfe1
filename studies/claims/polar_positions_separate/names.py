NAME = "polar_positions_separate"
MIXED = "second singular value of scores over the first, contents by offsets, by coordinate"
SAME = "share of contents whose score is highest at the commonest offset, by spread of angles"
POLAR, ROPE = "PoPE", "RoPE"
