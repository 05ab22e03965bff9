"""The encodings against those of the authors' release: `pe.npz` in the folder $LSPE_REFVECTORS."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from lspe.encodings import diffusion_kernel, laplacian_encoding, random_walk_encoding


def reference_file() -> Path | None:
    folder = os.environ.get("LSPE_REFVECTORS")
    file = Path(folder) / "pe.npz" if folder else None
    return file if file is not None and file.exists() else None


def graph_names() -> list[str]:
    file = reference_file()
    if file is None:
        return []
    with np.load(file) as arrays:
        return sorted(name.removesuffix("/n") for name in arrays if name.endswith("/n"))


class Reference(NamedTuple):
    edge_index: torch.Tensor
    num_nodes: int
    arrays: dict[str, np.ndarray]


pytestmark = pytest.mark.skipif(reference_file() is None, reason="needs pe.npz in the folder $LSPE_REFVECTORS")


@pytest.fixture(params=graph_names())
def reference(request: pytest.FixtureRequest) -> Reference:
    with np.load(reference_file()) as file:
        arrays = {
            key.removeprefix(f"{request.param}/"): file[key] for key in file if key.startswith(f"{request.param}/")
        }
    edge_index = torch.from_numpy(np.stack([arrays["src"], arrays["dst"]]))
    return Reference(edge_index, int(arrays["n"]), arrays)


def test_random_walk_encoding(reference):
    expected = reference.arrays["rwpe20_f32"]
    encoding = random_walk_encoding(reference.edge_index, reference.num_nodes, expected.shape[1])
    np.testing.assert_allclose(encoding, expected, rtol=0, atol=1e-7)


def test_laplacian_eigenvalues(reference):
    n = reference.num_nodes
    values = laplacian_encoding(reference.edge_index, n, n, dtype=torch.float64).values[0]
    np.testing.assert_allclose(values[: n - 1], reference.arrays["eigvals_eigh"][1:], rtol=0, atol=1e-12)


def test_laplacian_eigenvectors(reference):
    """Each eigenvector of the release lies in our space of its eigenvalue, where that space is complete.

    It lacks an arbitrary vector if the first eigenvalue, or the one after the last column, is the same. The release
    does not make the vectors of a repeated eigenvalue orthogonal.
    """
    expected, n = reference.arrays["eigvec8_as_coded_f32"], reference.num_nodes
    there = min(8, n - 1)
    vectors, values = laplacian_encoding(reference.edge_index, n, 8, dtype=torch.float64)
    vectors, values = vectors.numpy(), values[0].numpy()
    np.testing.assert_allclose(reference.arrays["laplacian"] @ vectors, vectors * values, rtol=0, atol=1e-12)
    assert not vectors[:, there:].any()
    assert not expected[:, there:].any()
    spectrum = reference.arrays["eigvals_eigh"]
    for column in range(there):
        same = np.abs(values[:there] - values[column]) < 1e-9
        if same.sum() == (np.abs(spectrum - values[column]) < 1e-9).sum():
            space = vectors[:, :there][:, same]
            projected = space @ (space.T @ expected[:, column])
            np.testing.assert_allclose(projected, expected[:, column], rtol=0, atol=1e-6)


def test_diffusion_kernel(reference):
    kernel = diffusion_kernel(reference.edge_index, reference.num_nodes, beta=0.25, steps=16)[0]
    source, target = reference.arrays["full_src"], reference.arrays["full_dst"]
    expected = reference.arrays["full_kRW_p16_b0.25_f32"][:, 0]
    np.testing.assert_allclose(kernel[source, target], expected, rtol=0, atol=1e-7)
