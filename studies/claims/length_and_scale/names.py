LARGEST = "largest weight, by number of scores"
OFF = "distance from softmax over the size of its output, by number of tokens"
SUM = "mean row sum, by number of tokens"
