"""Explanations of words on the page that a newcomer may not know."""

WORDS = {
    # parts of networks and texts; no names of architectures, whose meaning depends on the configuration
    "SAN": "self-attention network, as Dong et al. 2021 call networks whose blocks are attention",
    "MLP": "multilayer perceptron: the feed-forward sublayer of a transformer, which changes each token by itself",
    "skip": "skip connection (the residual connection of a sublayer): its input is added to its output",
    "norm": "a normalisation of states, such as a layer norm, which brings each token's vector to one size",
    "causal": "with a mask by which a token sees only itself and what came before it",
    "MLM": "masked language model: some words of a text are hidden, and the model predicts them",
    "BOS": "beginning of sequence: a special token put before a text",
    "CLS": "a special token put before a text, as in BERT",
    "SEP": "a special token put after a text, as in BERT",
    "noPE": "no position encoding",
    "APE": "absolute position encoding: a learned vector for each place, added to the input",
    "RPE": "relative position encoding: a learned number for each offset of two places, added to their score",
    "URPE": "universal RPE: attention weights multiplied by learned numbers, one for each offset (Luo et al. 2022)",
    "RTE": "recognising textual entailment: a data set of sentence pairs",
    "GAU": "gated attention unit: one head whose output is gated, feature by feature (Hua et al. 2022)",
    "KNA": "key-normalised attention",
    "BERT": "a pretrained transformer for text (Devlin et al. 2019)",
    "GPT": "generative pretrained transformer",
    "published": "as in the published code; of numbers: from papers",
    # measured quantities, and words for them
    "residual": "what is left of the tokens' vectors without their mean, as a share of their size: about 1 where they"
    " have nothing in common, 0 where all are one vector",
    "rank collapse": "all tokens become the same vector, so that the matrix of states has rank 1",
    "order of contraction": "p in out ~ C in^p for nearly identical tokens: 3 is doubly exponential collapse with depth, 1 "
    "exponential, 0 none",
    "doubly exponential": "the number of zeros after the decimal point grows by a factor with every layer",
    "path": "one way through a network: through one head of some layers, and around the others by their skip "
    "connections",
    "free directions": "ways to change a row of attention weights without changing the layer's output: the weights alone do "
    "not show where the output comes from",
    "own share": "the part of a token's state that comes from its own input",
    "influence": "how much a state changes with an input, measured by derivatives",
    "probe": "an input of one repeated symbol, in which only the network itself can distinguish positions",
    "chance": "the accuracy of the best guess that does not see the input",
    "attainable": "the accuracy of the best answers that depend only on their position and on the tokens that the mask shows",
    "floor": "the resolution of the number format: smaller values are rounding noise",
    "ceiling": "the largest possible value",
    "deviation": "standard deviation over random seeds: bands in charts, and numbers after ±",
    "seed": "a number from which data, initial weights, order and dropout are drawn: another seed is the whole "
    "experiment again",
    "setting": "task, training, depth, sizes and number format: only numbers of one setting are compared",
    "tie": "numbers whose difference, seed by seed, has a 95% interval that contains zero",
    "jacobian": "all derivatives of an output with respect to an input",
    "rollout": "the product of the attention weights of all layers",
    "ablation": "removal of a token, to see what changes",
    "normaliser": "what turns scores into attention weights",
    "sentinels": "special tokens that carry no input",
    "linear map": "a learned matrix that leads a state back towards the embedding of its token",
    "scorecard": "the table of headline numbers",
    "CSV": "a table as plain text, for any program",
    "Parquet": "a table as a binary file, with the types of its columns",
    "PDF": "a picture for print",
    "SVG": "a picture of lines, for print or screen",
}
