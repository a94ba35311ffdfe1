"""Check the hull task: its labels against scipy and against hulls known by hand, and its published geometry."""

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull

from rankfall.random_streams import stream
from rankfall.tasks.convex_hull import convex_hull, corners


@pytest.mark.parametrize("points", [3, 4, 10, 40])
def test_labels_are_those_of_scipy(points):
    data = convex_hull(stream(0, "data"), train=300, test=10, points=points)
    for inputs, targets in zip(data.train.inputs.double().numpy(), data.train.targets):
        assert set(targets.nonzero().flatten().tolist()) == set(ConvexHull(inputs).vertices.tolist())


def test_hulls_known_by_hand():
    square = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
    inside = np.array([[2.0, 2.0], [1.0, 3.0]])
    assert corners(square).all()
    assert corners(np.concatenate([inside, square])).tolist() == [False] * 2 + [True] * 4
    # A point on an edge is no corner, in whatever direction the edge runs.
    on_edges = np.array([[2.0, 0.0], [4.0, 1.0], [3.0, 4.0], [0.0, 2.0]])
    assert corners(np.concatenate([square, on_edges])).tolist() == [True] * 4 + [False] * 4
    diamond = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [0.5, 0.5], [-0.25, -0.75]])
    assert corners(diamond).tolist() == [True] * 4 + [False] * 2
    line = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    assert corners(line).tolist() == [True, False, True]
    assert corners(line[:2]).all()


def test_sizes_and_published_geometry():
    data = convex_hull(stream(2, "data"), train=2000, test=7)
    assert data.train.inputs.shape == (2000, 10, 2) and data.test.inputs.shape == (7, 10, 2)
    assert data.train.inputs.dtype == torch.float32 and (data.size_in, data.size_out, data.length) == (2, 2, 10)
    centres = data.train.inputs.double().mean(1)
    # A set's centre: the shift's variance 3.3^2, plus that of the mean of 10 points, 10^2 / 12 / 10.
    assert centres.std(0).tolist() == pytest.approx([(3.3**2 + 100 / 120) ** 0.5] * 2, rel=0.06)
    assert centres.mean(0).tolist() == pytest.approx([5.0, 5.0], abs=0.3)
    assert (data.train.inputs - data.train.inputs[:, :1]).abs().max() <= 10.0
