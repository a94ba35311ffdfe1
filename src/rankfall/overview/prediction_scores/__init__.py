"""How well what is measured at birth predicts what becomes of networks of architectures that a model has not seen."""
