NAME = "layer_collapse"
ERROR = "distance from the small network over |X|, by eta"
ONE, NONE, NORMED = "one layer", "no layer", "one layer, norms before"
