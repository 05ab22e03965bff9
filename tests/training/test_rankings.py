"""The scores of links, against scikit-learn and against OGB's definitions written out pair by pair."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from lspe.experiment.task import LINK_SCORES, Task
from lspe.training.objective import Objective
from lspe.training.rankings import RANKINGS

TASK = Task(level="link", kind="binary", outputs=1, metric="mrr")
few_values = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=400)


def scores_of(output: np.ndarray, joined: np.ndarray, parts: int = 1) -> dict[str, float]:
    scores = Objective(TASK).scores()
    for some in np.array_split(np.arange(len(output)), parts):
        scores.update(torch.tensor(output[some, None]).float(), torch.tensor(joined[some, None]).float())
    return scores.compute()


def ogb_mrr(positive: list[float], negative: list[float]) -> float:
    """ogbl-citation2, where every positive pair has the same negative ones: the mean of two ranks among equals."""
    total = 0.0
    for score in positive:
        optimistic = sum(other > score for other in negative)
        pessimistic = sum(other >= score for other in negative)
        total += 1 / (0.5 * (optimistic + pessimistic) + 1)
    return total / len(positive)


def ogb_hits(positive: list[float], negative: list[float], k: int) -> float:
    """ogbl-ppa, -collab and -ddi."""
    if len(negative) < k:
        return 1.0
    threshold = sorted(negative, reverse=True)[k - 1]
    return sum(score > threshold for score in positive) / len(positive)


@settings(max_examples=150, deadline=None)
@given(pairs=few_values, parts=st.integers(1, 4))
def test_against_the_definitions_with_many_equal_scores(pairs: list[tuple[int, bool]], parts: int) -> None:
    output = np.array([score for score, _ in pairs], dtype=float)
    joined = np.array([is_joined for _, is_joined in pairs], dtype=float)
    scores = scores_of(output, joined, parts)
    assert tuple(scores) == LINK_SCORES
    positive, negative = output[joined == 1].tolist(), output[joined == 0].tolist()
    if not positive or not negative:
        assert all(np.isnan(value) for value in scores.values())
        return
    assert scores["roc_auc"] == pytest.approx(roc_auc_score(joined, output), abs=1e-6)
    assert scores["ap"] == pytest.approx(average_precision_score(joined, output), abs=1e-6)
    assert scores["mrr"] == pytest.approx(ogb_mrr(positive, negative), rel=1e-6)
    for k in (20, 50, 100):
        assert scores[f"hits@{k}"] == pytest.approx(ogb_hits(positive, negative, k))


def test_against_the_definitions_without_equal_scores() -> None:
    generator = np.random.default_rng(0)
    joined = (generator.random(1000) < 0.4).astype(float)
    output = generator.standard_normal(1000) + joined
    output = output.astype(np.float32)
    scores = scores_of(output, joined)
    positive, negative = output[joined == 1].tolist(), output[joined == 0].tolist()
    assert scores["mrr"] == pytest.approx(ogb_mrr(positive, negative), rel=1e-6)
    for k in (20, 50, 100):
        assert scores[f"hits@{k}"] == pytest.approx(ogb_hits(positive, negative, k))
        assert 0 < scores[f"hits@{k}"] < 1
    assert set(RANKINGS) == {"mrr", "hits@20", "hits@50", "hits@100"}
