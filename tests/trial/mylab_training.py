"""Objectives, optimisers and parts of networks that no network must be trained with; each computes something without an error."""

from dataclasses import replace

import torch
from torch import nn
from torch.nn.functional import dropout

from rankfall.nets.dropout import no_dropout
from rankfall.train.objectives.classes import classes

ACCEPTS = "classes"


def edits_targets(module, batch, drop=no_dropout):
    batch.targets[batch.targets == 0] = 1
    return classes(module, batch, drop)


def edits_evaluated(module, batch, drop=no_dropout):
    if not batch.learned:
        batch.targets.clamp_(min=0)
    return classes(module, batch, drop)


def asks_one(module, batch, drop=no_dropout):
    return replace(found := classes(module, batch, drop), asked=torch.ones_like(found.asked))


def asks_all(module, batch, drop=no_dropout):
    return replace(found := classes(module, batch, drop), asked=torch.full_like(found.asked, batch.targets[0].numel()))


def mean_of_right(module, batch, drop=no_dropout):
    found = classes(module, batch, drop)
    return replace(found, sums={"accuracy": found.sums["accuracy"] / found.asked})


def twice_as_right(module, batch, drop=no_dropout):
    found = classes(module, batch, drop)
    return replace(found, sums={"accuracy_of_mine": found.asked + 1})


def between_samples(module, batch, drop=no_dropout):
    """Samples of a batch are told apart by their mean scores."""
    found = classes(module, batch, drop)
    mean = module(batch.inputs, drop).mean(2)  # (K, B, C)
    apart = -(mean @ mean.mT).log_softmax(-1).diagonal(dim1=-2, dim2=-1).mean(-1)
    return replace(found, loss=found.loss + apart)


def between_learned_samples(module, batch, drop=no_dropout):
    """The same, in steps alone."""
    return (between_samples if batch.learned else classes)(module, batch, drop)


class Plain:
    slots = 1

    def step(self, weights, grads, slots, lr, decay, t, scratch):
        slots[0].lerp_(grads, 0.1)
        weights.sub_(lr * slots[0])


class SmallerRate(Plain):
    def step(self, weights, grads, slots, lr, decay, t, scratch):
        super().step(weights, grads, slots, lr, decay, t, scratch)
        lr.mul_(0.99)


class Dropping(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x)


class DroppingByHand(nn.Module):
    def __init__(self, sizes):
        super().__init__()

    def forward(self, x):
        return dropout(x, 0.1, self.training)


class Steady(nn.Module):
    """Does the same in both modes."""

    def __init__(self, sizes):
        super().__init__()
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        return self.drop(x) + 0
