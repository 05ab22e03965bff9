"""Read the reference vectors and speak the release's parameter names.

A file holds inputs, weights, outputs and gradients of one layer or one small network of the authors' release.
Names are translated by rules, not file by file, so that further files of the same kind need no code.
"""

import json
import os
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lspe.nn import PNA, Topology

RULES: list[tuple[str, str]] = [
    (r"^embedding_h\.weight$", "embedder.node_table.weight"),
    (r"^embedding_e\.weight$", "embedder.edge_table.weight"),
    (r"^(embedding_h|atom_encoder)\.atom_embedding_list\.\d+\.weight$", "embedder.node_table.weight"),
    (r"^(embedding_e|bond_encoder)\.bond_embedding_list\.\d+\.weight$", "embedder.edge_table.weight"),
    (r"^embedding_p\.", "embed_p."),
    (r"^p_out\.", "project_p."),
    (r"^Whp\.", "fuse."),
    (r"^MLP_layer\.FC_layers\.([01])\.", r"head.hidden.\1."),
    (r"^MLP_layer\.FC_layers\.2\.", "head.out."),
    # GatedGCN: the release calls the source's gate B1 and the target's B2 (without positions D and E)
    (r"^(layers\.\d+\.)?A\.", r"\1A1."),
    (r"^(layers\.\d+\.)?B\.", r"\1A2."),
    (r"^(layers\.\d+\.)?C\.", r"\1B3."),
    (r"^(layers\.\d+\.)?D\.", r"\1B2."),
    (r"^(layers\.\d+\.)?E\.", r"\1B1."),
    (r"^(layers\.\d+\.)?B1\.", r"\1B2."),
    (r"^(layers\.\d+\.)?B2\.", r"\1B1."),
    (r"bn_node_([he])\.", r"norm_\1."),
    # PNA: one tensor for all towers
    (r"(towers\.\d+\.)?pretrans_([hp])\.fully_connected\.0\.linear\.", r"aggregate_\2.message."),
    (r"(towers\.\d+\.)?posttrans_([hp])\.fully_connected\.0\.linear\.", r"aggregate_\2.update."),
    (r"(towers\.\d+\.)?batchnorm_h\.", "norm_h."),
    (r"mixing_network_([hp])\.linear\.", r"mix_\1."),
    # SAN, GraphiT
    (r"(attention_[hp])\.([QKE])_2\.", r"\1.\2_added."),
    (r"O_h\.", "O."),
    (r"FFN_h_layer([12])\.", r"W\1."),
    (r"batch_norm1_h\.", "norm_attention."),
    (r"batch_norm2_h\.", "norm_h."),
    (r"^gamma$", "gamma"),
]


def folder() -> Path | None:
    value = os.environ.get("LSPE_REFVECTORS")
    return Path(value) if value else None


def files(pattern: str) -> list[Path]:
    where = folder()
    return sorted(where.glob(pattern)) if where else []


class Case:
    """One file; ``case["in/h"]`` is a float64 or int64 tensor."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        self.meta = json.loads(str(arrays.pop("meta_json")))
        self.tensors = {key: torch.from_numpy(np.asarray(value)) for key, value in arrays.items()}

    def __getitem__(self, key: str) -> Tensor:
        return self.tensors[key]

    def get(self, key: str) -> Tensor | None:
        return self.tensors.get(key)

    def under(self, prefix: str) -> dict[str, Tensor]:
        return {key[len(prefix) :]: value for key, value in self.tensors.items() if key.startswith(prefix)}

    @property
    def edge_index(self) -> Tensor:
        return torch.stack([self["in/src"], self["in/dst"]])

    @property
    def real(self) -> Tensor | None:
        real = self.get("in/real")
        return None if real is None else real.bool()


def our_name(name: str) -> str | None:
    """Our name of a tensor of the release; ``None`` for an alias of one that is named already."""
    if re.search(r"attention_[hp]\.gamma$", name):
        return None
    for pattern, replacement in RULES:
        translated, hits = re.subn(pattern, replacement, name)
        if hits:
            return translated
    return name


def translate(tensors: dict[str, Tensor], ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors under the release's names → under our names and in our shapes.

    Several of theirs may be one of ours (towers, embedding tables): they are stacked where ours has one
    dimension more, otherwise put one below the other, in the order of their numbers.
    """
    parts: dict[str, list[tuple[list[int], Tensor]]] = defaultdict(list)
    for name, tensor in tensors.items():
        translated = our_name(name)
        if translated is None:
            continue
        if translated not in ours and f"layers.0.{translated}" in ours:
            translated = f"layers.0.{translated}"  # shared by all layers, named by the first
        if translated not in ours:
            raise KeyError(f"{name} → {translated}: our module has no such tensor")
        parts[translated].append(([int(number) for number in re.findall(r"\d+", name)], tensor))
    return {name: _join([t for _, t in sorted(p, key=lambda x: x[0])], ours[name]) for name, p in parts.items()}


def _join(parts: list[Tensor], like: Tensor) -> Tensor:
    if not like.dim():  # a counter that all towers share
        return parts[0]
    joined = torch.stack(parts) if like.dim() > parts[0].dim() else torch.cat(parts)
    assert joined.shape == like.shape, f"{tuple(joined.shape)} does not fit {tuple(like.shape)}"
    return joined


def load_weights(module: nn.Module, case: Case) -> None:
    """Give a module the weights and buffers of a file; every tensor of the module has to be there."""
    ours = module.state_dict()
    state = translate(case.under("state/"), ours)
    shared = {name for name in ours if re.fullmatch(r"layers\.[1-9]\d*\.gamma", name)}
    missing = set(ours) - set(state) - shared
    assert not missing, f"the file has nothing for {sorted(missing)}"
    module.load_state_dict(state, strict=False)


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float, what: str) -> None:
    error = (ours.detach() - theirs).abs().max().item() if theirs.numel() else 0.0
    assert error <= tolerance, f"{what}: differs by {error:.3g}, allowed {tolerance:g}"


def assert_gradients(module: nn.Module, case: Case, mode: str, tolerance: float) -> None:
    """All parameters' gradients; one that the file has no gradient for has to have none here."""
    ours = dict(module.named_parameters())
    theirs = translate(case.under(f"{mode}/grad/"), ours)
    for name, parameter in ours.items():
        if name in theirs:
            assert parameter.grad is not None, f"{mode} gradient of {name}: none"
            assert_close(parameter.grad, theirs[name], tolerance, f"{mode} gradient of {name}")
        else:
            assert parameter.grad is None or not parameter.grad.any(), f"{mode} gradient of {name}: unexpected"


def assert_buffers(module: nn.Module, case: Case, tolerance: float) -> None:
    """The BN statistics after one forward pass in training mode."""
    ours = dict(module.named_buffers())
    theirs = translate(case.under("train/after/"), ours)
    assert theirs, "the file has no buffers"
    for name, expected in theirs.items():
        assert_close(ours[name].double(), expected.double(), tolerance, f"buffer {name}")


class SlippedPNA(PNA):
    """PNA-LSPE without towers as the release has it: p gains tanh of the structure's branch, its own is lost.

    With this slip put in, everything else of the release's layer and network has to agree.
    """

    def forward(self, h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor | None, Tensor]:
        branch = F.relu(self._normalized_structure(h, p, e, graph))
        return h + branch, p + torch.tanh(branch), e


def topology(case: Case) -> Topology:
    """The graphs of a file, with the stored kernel where there is one."""
    graph = Topology(case.edge_index, len(case["in/batch"]), case["in/batch"], real=case.real)
    values = case.get("in/k_RW")
    if values is not None:
        kernel = torch.zeros(graph.num_graphs, graph.max_nodes, graph.max_nodes, dtype=torch.float64)
        kernel[graph.pair_slot(graph.edge_index)] = values.squeeze(-1)
        graph = Topology(graph.edge_index, graph.num_nodes, graph.batch, real=case.real, kernel=kernel)
    return graph
