"""The average of weights, against torch's own."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from lspe.training.average import MovingAverage
from lspe.training.flat import FlatParameters


def test_average_is_torchs_with_the_same_decay() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    ours = MovingAverage(network, FlatParameters(network.parameters()), decay=0.3)
    theirs = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.3), use_buffers=True)
    theirs.n_averaged.fill_(1)  # torch copies at the first update; ours begins with the weights it was given
    decays = [min(0.3, (1 + step) / (10 + step)) for step in range(12)]
    for decay in decays:
        network(torch.randn(5, 3)).square().sum().backward()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter -= 0.01 * parameter.grad
        ours.update()
        theirs.multi_avg_fn = get_ema_multi_avg_fn(decay)
        theirs.update_parameters(network)
    averaged = dict(ours.network.state_dict())
    assert averaged.pop("1.num_batches_tracked") == network[1].num_batches_tracked == 12
    for name, value in averaged.items():
        assert torch.allclose(value, theirs.module.state_dict()[name], atol=1e-6), name
    assert decays[0] < 0.3 == decays[-1]


def test_average_goes_on_from_its_state() -> None:
    torch.manual_seed(0)
    network, later = nn.Linear(2, 2), nn.Linear(2, 2)
    one, other = (MovingAverage(x, FlatParameters(x.parameters()), 0.9) for x in (network, later))
    network.load_state_dict(later.state_dict())
    one.update()
    other.load_state_dict(one.state_dict())
    one.update()
    other.update()
    assert torch.equal(one.network.weight, other.network.weight)
    assert one.steps == other.steps == 2
