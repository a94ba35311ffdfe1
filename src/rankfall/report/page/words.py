"""Words of the page that a newcomer may not know."""

WORDS = {
    # of what networks are made, and of texts: no name of an architecture, which means what a configuration makes of it
    "SAN": "self-attention network, as Dong et al. 2021 call networks whose blocks are attention",
    "MLP": "multilayer perceptron: the feed-forward sublayer of a transformer, which changes each token by itself",
    "skip": "skip connection (the residual connection of a sublayer): its input is added to its output",
    "norm": "a normalisation of states, as a layer norm: each token's vector is brought to one size",
    "causal": "with a mask by which a token sees only itself and what came before it",
    "MLM": "masked language model: some words of a text are hidden, and it has to find them",
    "BOS": "beginning of sequence: a special token put before a text",
    "CLS": "a special token put before a text, as BERT has it",
    "SEP": "a special token put after a text, as BERT has it",
    "noPE": "no position encoding",
    "APE": "absolute position encoding: a learned vector for each place, added to the input",
    "RPE": "relative position encoding: a learned number for each offset of two places, added to their score",
    "URPE": "universal RPE: attention weights multiplied by learned numbers, one for each offset (Luo et al. 2022)",
    "RTE": "recognising textual entailment: a data set of sentence pairs",
    "GAU": "gated attention unit: one head whose output is gated, feature by feature (Hua et al. 2022)",
    "KNA": "key-normalised attention",
    "BERT": "a pretrained transformer for text (Devlin et al. 2019)",
    "GPT": "generative pretrained transformer",
    "published": "as the published code has it; of numbers: those of papers",
    # what is measured, and how it is said
    "residual": "what is left of the tokens' vectors without their mean, as a share of their size: about 1 where they"
    " have nothing in common, 0 where all are one vector",
    "rank collapse": "all tokens become the same vector, so that the matrix of states has rank 1",
    "order of contraction": "p in out ~ C in^p for nearly identical tokens: 3 is doubly exponential collapse with depth, 1 "
    "exponential, 0 none",
    "doubly exponential": "the number of zeros after the decimal point grows by a factor with every layer",
    "path": "one way through a network: through one head of some layers, and around the others by their skip "
    "connections",
    "free directions": "ways to change a row of attention weights that change nothing of the layer's output: the weights do "
    "not say by themselves where the output comes from",
    "own share": "the part of a token's state that comes from its own input",
    "influence": "how much a state changes with an input, by derivatives",
    "probe": "one symbol many times as input: only the network itself can tell the places apart",
    "chance": "what the best guess reaches that never sees an input",
    "attainable": "what the best answers reach that are any function of their place and of the tokens that the mask lets it read",
    "floor": "what the number format resolves: smaller values are rounding noise",
    "ceiling": "the most that is possible",
    "deviation": "standard deviation over random seeds, as bands in charts and behind ±",
    "seed": "a number from which data, initial weights, order and dropout are drawn: another seed is the whole "
    "experiment again",
    "setting": "task, training, depth, sizes and number format: only numbers of one setting are compared",
    "tie": "numbers whose difference, seed by seed, has zero in its 95% interval",
    "jacobian": "all derivatives of an output by an input",
    "rollout": "attention weights of all layers, multiplied",
    "ablation": "a token is taken out, to see what changes",
    "normaliser": "what turns scores into attention weights",
    "sentinels": "special tokens that carry no input",
    "linear map": "a learned matrix that leads a state back towards the embedding of its token",
    "scorecard": "the table of headline numbers",
    "CSV": "a table as plain text, for any program",
    "Parquet": "a table as a binary file, with the types of its columns",
    "PDF": "a picture for print",
    "SVG": "a picture of lines, for print or screen",
}
