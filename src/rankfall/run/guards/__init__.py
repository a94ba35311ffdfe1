"""Guards around a computation: what it may read, import, start and change, and how a component is tried before it is used."""
