RIGHT = "chance that a needed token is above a needless one, by network"
RANKS = "rank correlation with the effect of a token, by layer"
AMONG = "of the other tokens: "  # the last token itself, which skips pass on, is left out
