"""Jobs of a run that start at once: a server that has imported the libraries forks a process for each of them."""
