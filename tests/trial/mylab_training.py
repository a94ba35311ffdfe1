"""Objectives that no network must be trained with; each computes something without an error."""

from dataclasses import replace

import torch

from rankfall.nets.primitives import no_dropout
from rankfall.train.objectives._base import Graded
from rankfall.train.objectives.classes import classes

ACCEPTS = "classes"


def edits_targets(module, batch, drop=no_dropout):
    batch.targets[batch.targets == 0] = 1
    return classes(module, batch, drop)


def mean_of_right(module, batch, drop=no_dropout):
    graded = classes(module, batch, drop)
    return replace(graded, sums={"accuracy": graded.sums["accuracy"] / graded.asked})


def between_samples(module, batch, drop=no_dropout):
    """Tell samples of a batch apart by their mean scores."""
    graded = classes(module, batch, drop)
    mean = module(batch.inputs, drop).mean(2)  # (K, B, C)
    apart = -(mean @ mean.mT).log_softmax(-1).diagonal(dim1=-2, dim2=-1).mean(-1)
    return replace(graded, loss=graded.loss + apart)


def between_learned_samples(module, batch, drop=no_dropout):
    """Do the same in steps alone."""
    return (between_samples if batch.learned else classes)(module, batch, drop)


def common_logits(module, batch, drop=no_dropout):
    """Return shares of the classes, less what the logits of all members have in common."""
    logits = module(batch.inputs, drop)
    shares = (logits - logits.amax()).exp()
    loss = -(shares[..., 0] / shares.sum(-1)).mean((1, 2))
    return Graded(loss, torch.ones_like(loss), {})
