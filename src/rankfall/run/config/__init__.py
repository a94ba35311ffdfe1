"""The configuration: from YAML to plain data, or one line that says what is wrong and where."""
