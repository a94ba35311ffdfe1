"""List the real models that `rankfall check` compares with, or measure one and add it."""

import argparse

ARGUMENTS = """
[ACTION]                        list the models, or add one (default: list)
[NAME]                          of add: hub name, folder, model type, or minilm, rxnmapper, smollm2
--phase init|pretrained         default: pretrained, for a model type init
--revision COMMIT               commit of the hub, or digest of a folder's weights
--quantise FORMAT               round pretrained matrices to a format of GGUF, e.g. Q4_1
--text TEXT                     as of `rankfall measure model` (default: topics)
--samples N                     texts (default: 8)
--length N                      tokens of a text; default 128, of rxnmapper 50
--seed N                        seed of weights and inputs that are drawn (default: 0)
--to FILE                       file of rows; default your own, which check reads
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.check.bands import REAL, read_models, user_file, write_model
    from rankfall.errors import RankfallError

    if args.action not in ("list", "add"):
        raise RankfallError(f"bands {args.action!r} is not one of list, add\n  fix: rankfall bands add {args.action}")
    if args.action == "list":
        for path in (REAL, user_file()):
            for model in read_models(path):
                origin = "; ".join(
                    filter(
                        None, (model.package, f"weights {model.revision}", f"{model.samples} x {model.length} tokens")
                    )
                )
                print(
                    f"{model.describe()}: {model.residual[0]:.2f} to {model.residual[-1]:.2f}; {model.kind}; {origin}; {model.versions}"
                )
        return 0
    if args.name is None:
        raise RankfallError(
            "bands add: no model\n  fix: a hub name, a folder, a model type, or minilm, rxnmapper, smollm2"
        )
    if args.samples < 2:
        raise RankfallError(f"--samples is {args.samples}\n  fix: 2 or more, in pairs")
    from transformers import CONFIG_MAPPING

    from rankfall.check.library import measure_model
    from rankfall.models.families.published import SIZES
    from rankfall.models.source import ModelSource, usual_length
    from rankfall.models.texts import Texts

    drawn = args.name in SIZES or args.name in CONFIG_MAPPING
    source = ModelSource(
        args.name, args.phase or ("init" if drawn else "pretrained"), args.revision, quantise=args.quantise
    )
    row = measure_model(source, Texts(args.text, args.samples, args.length or usual_length(args.name), args.seed))
    path = args.to or user_file()
    print(write_model(path, row))
    print(f"written to {path}; this line is all that others need")
    return 0
