DISTANCE = "log10 of the distance of last states over their size, by number of equal tokens"
EQUAL = "share of n with equal last states, by number of equal tokens"
APART = "log10 of the largest distance of last states over their size, by layers"
READ = "largest n up to which every n is read off, by digits"
