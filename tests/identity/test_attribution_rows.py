"""Which share every token of a text would have."""

import pandas as pd

from rankfall.identity.attribution.rows import equal_shares


def test_equal_shares_are_one_in_as_many_as_there_are() -> None:
    """Of networks all tokens are asked: 6 in 2 samples are 3 each. Of models some: the text has 8, or 7 where the first does not count."""
    networks = pd.DataFrame({"samples": [2, 4], "tokens": [6, 20]})
    assert equal_shares(networks).tolist() == [1 / 3, 1 / 5]
    models = pd.DataFrame(
        {"samples": [2, 2], "tokens": [3, 3], "length": [8, 8], "kept_tokens": ["all", "without first"]}
    )
    assert equal_shares(models).tolist() == [1 / 8, 1 / 7]
