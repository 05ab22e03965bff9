"""What may stand in a layer instead of BatchNorm: PyTorch's own, in every layer, by a word of the configuration."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lspe.experiment import build_network, override, read_experiment
from lspe.nn import BatchNorm
from lspe.nn.normalisation import RowNorm, normalise_by
from lspe.testing import check_batch_equals_singles
from tests.graphs import CORNER_CASES
from tests.nn.builders import LAYERS, call_nodes, make_layer, with_inputs


def test_it_is_pytorchs_with_what_stands_around_it() -> None:
    torch.manual_seed(0)
    x, r, s = torch.randn(5, 8), torch.randn(5, 8), torch.rand(5, 1)
    norm = RowNorm(nn.LayerNorm(8))
    torch.testing.assert_close(norm(x, scale=s, relu=True, residual=r), r + F.relu(F.layer_norm(x * s, (8,))))
    torch.testing.assert_close(RowNorm(nn.Identity())(x, relu=True), F.relu(x))


@pytest.mark.parametrize("kind", ["layer", "none"])
@pytest.mark.parametrize("name", LAYERS)
def test_rows_do_not_depend_on_each_other_in_training(name: str, kind: str) -> None:
    """With BatchNorm a graph's result depends on the batch while training; so this fails without the replacement."""
    layer = make_layer(name)
    normalise_by(kind, layer)
    layer.double().train()
    assert not any(isinstance(one, BatchNorm) for one in layer.modules())
    graphs = [with_inputs(CORNER_CASES[one], layer) for one in ("decalin", "path", "one node", "star")]
    check_batch_equals_singles(lambda data: call_nodes(layer, data), graphs, tolerance=1e-9)


def test_a_word_of_the_configuration() -> None:
    settings = ["model.norm=layer", "model.feed_forward=pre-norm"]
    network = build_network(override(read_experiment("zinc/gatedgcn-lspe"), settings))
    kinds = [type(one) for one in network.layers.modules()]
    assert kinds.count(nn.LayerNorm) == 3 * 16
    assert BatchNorm not in kinds


def test_what_has_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no lspe\.nn\.BatchNorm in these layers that norm=layer could replace"):
        normalise_by("layer", nn.Linear(2, 2))
    with pytest.raises(ValueError, match="'instance' is not one of batch, layer, none"):
        normalise_by("instance", nn.Linear(2, 2))  # type: ignore[arg-type]
