"""How well measurements at birth predict the outcomes of networks whose architectures a model has not seen."""
