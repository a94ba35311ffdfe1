"""What an influence is compared with: equal shares of all places."""

import pandas as pd

from rankfall.identity.influence.rows import equal_places


def test_equal_places_share_the_whole() -> None:
    assert equal_places(pd.DataFrame({"length": [4, 8]})).tolist() == [0.25, 0.125]
    assert equal_places(pd.DataFrame({"places": [5, 2], "length": [9, 9]})).tolist() == [0.2, 0.5]
