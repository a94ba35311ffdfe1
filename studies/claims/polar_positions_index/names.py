NAME = "polar_positions_index"
RIGHT = "share of right answers, by training step"
POLAR, ROPE = "PoPE", "RoPE"
