NAME = "householder_paths_track_states"
RIGHT = "share of right answers, by tokens"
PATH, ROPE, NONE = "PaTH", "RoPE", "no position"
