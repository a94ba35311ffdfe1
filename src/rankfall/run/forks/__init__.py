"""Start a run's jobs fast: a server imports the libraries once and forks a process for each job."""
