"""Guards around a computation: which files a component may read, and checks that code and files stay unchanged during a job."""
