PEAK = "distance of the largest entry of the last row, by layers"
OFF = "total variation distance from the closed form, by layers"
