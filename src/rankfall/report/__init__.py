"""Tables with declared schemas, and the figures and reports made from them alone."""
