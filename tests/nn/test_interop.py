"""Our graphs in PyG's own loader, and PyG's batches in our networks."""

import torch
from torch_geometric.loader import DataLoader

from lspe.data import smiles_to_graphs
from lspe.experiment import build_network
from lspe.features import OGBFeatures

SMILES = ["CCO", "c1ccccc1O", "[Na+].[Cl-]", "C", "CC(=O)Nc1ccc(O)cc1", "C1CCC2CCCCC2C1", "N#N"]


def test_a_plain_pyg_loader_gives_the_same_network_output() -> None:
    graphs = smiles_to_graphs(SMILES, OGBFeatures()).graphs.with_encoding("rwpe", 16)
    torch.manual_seed(0)
    network = build_network("moltox21/gatedgcn-lspe").eval()
    ours = network(graphs.batch())
    theirs = torch.cat([network(batch) for batch in DataLoader(list(graphs), batch_size=len(SMILES))])
    assert torch.equal(ours, theirs)
    in_parts = torch.cat([network(batch) for batch in DataLoader(list(graphs), batch_size=3)])
    torch.testing.assert_close(in_parts, ours, rtol=1e-4, atol=1e-5)
