"""token_identity.parquet: how often a hidden state identifies the token of its sentence that it came from."""

from rankfall.report.schema import Column, Table

TOKEN_COLUMNS = (
    Column("layer", "int", "whose states are mapped; 0 is what enters the first layer; null: position", nullable=True),
    Column(
        "map",
        "text",
        "naive: the state itself; linear; mlp: linear and one hidden layer; position: knows only the place of the token",
    ),
    Column("loss", "text", "what the map was trained on: cosine or l2; null: not trained", nullable=True),
    Column("trained_layer", "int", "layer whose states the map was trained on; null: not trained", nullable=True),
    Column("candidates", "text", "sentence; distinct: words that occur once in it; vocabulary: all, at the same place"),
    Column("distance", "text", "of the nearest neighbour: cosine or l2"),
    Column(
        "rate",
        "float",
        "share of tested tokens whose own embedding is the nearest; one of m nearest counts 1/m; null: see rate_reason",
        nullable=True,
    ),
    Column(
        "low", "float", "lower end of the 95% interval of the rate over sentences (Wilson, clustered)", nullable=True
    ),
    Column("high", "float", "its upper end", nullable=True),
    Column("chance", "float", "rate of a guess among the candidates", nullable=True),
    Column("tokens", "int", "tokens that the rate is over"),
    Column("sentences", "int", "sentences that these are of: tested, neither trained nor validated on"),
    Column("rate_reason", "text", "why there is no rate; else empty"),
    Column("epoch", "int", "of the training that validated best; 0: least squares; null: not trained", nullable=True),
)
TOKEN_KEY = ("layer", "map", "loss", "trained_layer", "candidates", "distance")


def token_identity() -> Table:
    return Table(
        "token_identity",
        "a cell x layer x map x loss x layer trained on x candidates x distance",
        TOKEN_COLUMNS,
        key=TOKEN_KEY,
    )
