"""Fast starts of a run's jobs: a server that has imported the libraries forks a process for each job."""
