"""The configuration: read YAML into plain data, or raise an error of one line with the fault and its place."""
