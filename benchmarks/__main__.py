"""`python -m benchmarks`, apart from the benchmark itself: a process that it starts could not find its functions here."""

from benchmarks.stacking import main

main()
