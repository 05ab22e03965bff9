"""Losses and scores, against torch, scikit-learn and OGB's evaluator."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ogb.graphproppred import Evaluator
from sklearn.metrics import accuracy_score, mean_absolute_error, r2_score, recall_score, root_mean_squared_error
from torch.nn import functional as F

from lspe.experiment import Task
from lspe.training import Objective, TargetScaling

REGRESSION = Task(kind="regression", outputs=2, metric="mae")
BINARY = Task(kind="binary", outputs=3, metric="roc_auc")
CLASSES = Task(kind="multiclass", outputs=4, metric="accuracy")


def scores_of(objective: Objective, output: torch.Tensor, y: torch.Tensor, parts: int = 1) -> dict[str, float]:
    scores = objective.scores()
    for one, target in zip(output.chunk(parts), y.chunk(parts), strict=True):
        scores.update(one, target)
    return scores.compute()


@st.composite
def labelled(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Logits, with ties and far beyond where float32's sigmoid is 1, and labels of which some are missing."""
    rows = draw(st.integers(4, 30))
    cells = st.lists(st.integers(-60, 60), min_size=3 * rows, max_size=3 * rows)
    output = np.array(draw(cells), dtype=np.float32).reshape(rows, 3)
    label = st.sampled_from([0.0, 1.0, np.nan])
    y = np.array(draw(st.lists(label, min_size=3 * rows, max_size=3 * rows)), dtype=np.float32).reshape(rows, 3)
    return output, y


@settings(deadline=None, max_examples=60)
@given(labelled())
def test_binary_scores_are_those_of_ogb(case: tuple[np.ndarray, np.ndarray]) -> None:
    output, y = case
    ours = scores_of(Objective(BINARY), torch.from_numpy(output), torch.from_numpy(y), parts=2)
    for name, data, key in (("roc_auc", "ogbg-moltox21", "rocauc"), ("ap", "ogbg-molpcba", "ap")):
        evaluator = Evaluator(data)
        evaluator.num_tasks = 3
        try:
            expected = evaluator.eval({"y_true": y, "y_pred": output})[key]
        except RuntimeError:  # OGB refuses where no task has both classes
            assert np.isnan(ours[name])
            continue
        assert ours[name] == pytest.approx(expected, abs=1e-6)


def test_a_task_with_one_class_only_is_left_out_of_the_mean() -> None:
    output = torch.tensor([[3.0, 0.0, 1.0], [2.0, 0.0, 2.0], [1.0, 0.0, 3.0]])
    y = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, torch.nan]])
    assert scores_of(Objective(BINARY), output, y)["roc_auc"] == 1.0


def test_regression_scores_are_in_original_units_and_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    y = generator.normal([50.0, -3.0], [10.0, 0.1], size=(40, 2))
    guess = y + generator.normal(size=(40, 2))
    scaling = TargetScaling.of(torch.from_numpy(y))
    assert scaling.mean == pytest.approx(y.mean(axis=0))
    assert scaling.std == pytest.approx(y.std(axis=0))
    ours = scores_of(Objective(REGRESSION, scaling), scaling.shrink(torch.from_numpy(guess)), torch.from_numpy(y), 3)
    assert ours["mae"] == pytest.approx(mean_absolute_error(y, guess))
    assert ours["rmse"] == pytest.approx(np.mean(root_mean_squared_error(y, guess, multioutput="raw_values")))
    assert ours["r2"] == pytest.approx(np.mean(r2_score(y, guess, multioutput="raw_values")), rel=1e-5)


def test_missing_values_of_a_regression_do_not_count() -> None:
    y = torch.tensor([[1.0, torch.nan], [3.0, 4.0]])
    output = torch.tensor([[2.0, 1e9], [3.0, 6.0]], requires_grad=True)
    objective = Objective(REGRESSION)
    loss, share = objective.loss(output, y)
    assert (loss.item(), share.item()) == (3.0, 3.0)
    loss.backward()
    assert output.grad is not None
    assert output.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert scores_of(objective, output.detach(), y)["mae"] == pytest.approx((0.5 + 2.0) / 2)


def test_losses_are_those_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    output = torch.randn(9, 4, generator=generator)
    y = torch.randint(0, 4, (9,), generator=generator)
    loss, share = Objective(CLASSES).loss(output, y)
    assert loss / share == pytest.approx(F.cross_entropy(output, y).item())

    labels = torch.randint(0, 2, (9, 3), generator=generator).float()
    labels[0, 1] = torch.nan
    known = ~labels.isnan()
    loss, share = Objective(BINARY).loss(output[:, :3], labels)
    expected = F.binary_cross_entropy_with_logits(output[:, :3][known], labels[known])
    assert loss / share == pytest.approx(expected.item())

    squared = Objective(Task(kind="regression", outputs=4, metric="rmse"))
    target = torch.randn(9, 4, generator=generator)
    loss, share = squared.loss(output, target)
    assert loss / share == pytest.approx(F.mse_loss(output, target).item())


@settings(deadline=None, max_examples=30)
@given(labelled(), st.integers(1, 4))
def test_loss_and_scores_do_not_depend_on_how_the_graphs_are_divided(
    case: tuple[np.ndarray, np.ndarray], parts: int
) -> None:
    output, y = torch.from_numpy(case[0]), torch.from_numpy(case[1])
    objective = Objective(BINARY)
    whole = objective.loss(output.double(), y.double())
    divided = [objective.loss(a.double(), b.double()) for a, b in zip(output.chunk(parts), y.chunk(parts), strict=True)]
    assert sum(loss for loss, _ in divided).item() == pytest.approx(whole[0].item())
    assert sum(share for _, share in divided).item() == whole[1].item()
    chunks = len(output.chunk(parts))
    np.testing.assert_equal(scores_of(objective, output, y, chunks), scores_of(objective, output, y))


def test_weights_are_those_of_copies() -> None:
    """A graph of weight 2 counts like the same graph twice, one of weight 0 not at all."""
    output = torch.tensor([[1.0, 2.0], [3.0, 5.0], [7.0, 7.0]])
    y = torch.tensor([[0.0, torch.nan], [1.0, 1.0], [0.0, 0.0]])
    objective = Objective(REGRESSION)
    weighted = objective.loss(output, y, torch.tensor([2.0, 1.0, 0.0]))
    copied = objective.loss(output[[0, 0, 1]], y[[0, 0, 1]])
    assert weighted == copied


def test_accuracy_is_in_percent_and_predictions_are_probabilities() -> None:
    output = torch.tensor([[2.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 9.0]])
    objective = Objective(CLASSES)
    assert scores_of(objective, output, torch.tensor([0, 1, 2]))["accuracy"] == pytest.approx(100 * 2 / 3)
    assert objective.predict(output).sum(dim=-1).tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert Objective(BINARY).predict(torch.tensor([[0.0, 100.0, -100.0]])).tolist() == [[0.5, 1.0, pytest.approx(0)]]


def test_scores_of_classes_are_those_of_scikit_learn_over_the_known_ones() -> None:
    output, y = torch.randn(200, 4), torch.randint(0, 3, (200,))  # class 3 never occurs
    y[::7] = -1
    known = y >= 0
    guess = output[known].argmax(dim=-1)
    ours = scores_of(Objective(CLASSES), output, y, parts=3)
    assert ours["accuracy"] == pytest.approx(100 * accuracy_score(y[known], guess))
    balanced = recall_score(y[known].numpy(), guess.numpy(), labels=[0, 1, 2], average="macro")
    assert ours["balanced_accuracy"] == pytest.approx(100 * balanced)
    nothing = scores_of(Objective(CLASSES), output, torch.full_like(y, -1))
    assert all(value != value for value in nothing.values())


def test_an_unknown_class_has_no_part_in_the_loss() -> None:
    output, y = torch.randn(6, 4, requires_grad=True), torch.tensor([0, -1, 2, 3, -1, 1])
    loss, share = Objective(CLASSES).loss(output, y)
    expected, count = Objective(CLASSES).loss(output[y >= 0], y[y >= 0])
    assert float(loss.detach()) == pytest.approx(float(expected.detach()))
    assert float(share) == float(count) == 4
    loss.backward()
    assert (output.grad[y < 0] == 0).all()


def test_where_the_balanced_accuracy_counts_all_classes_weigh_the_same() -> None:
    y = torch.tensor([0] * 8 + [1] * 2 + [-1])
    task = Task(kind="multiclass", outputs=3, metric="balanced_accuracy")
    objective = Objective.of(task, y, standardize=True)
    assert objective.class_weights == (0.625, 2.5, 0.0)
    output = torch.randn(11, 3)
    loss, share = objective.loss(output, y)
    each = torch.nn.functional.cross_entropy(output[:10], y[:10], reduction="none")
    assert float(loss / share) == pytest.approx(float((each[:8].mean() + each[8:].mean()) / 2), rel=1e-5)
    assert Objective.of(CLASSES, y, standardize=True).class_weights is None


@pytest.mark.parametrize("balance, weights", [(0.0, None), (0.5, (2.0, 1.0, 0.5)), (1.0, (4.0, 1.0, 0.25))])
def test_rare_labels_may_count_for_more_and_probabilities_stay_frequencies(
    balance: float, weights: tuple[float, ...] | None
) -> None:
    """One yes in five, only yes, four yes in five; the loss is PyTorch's with ``pos_weight``."""
    y = torch.tensor([[1, 1, 0], [0, 1, 1], [0, 1, 1], [0, 1, 1], [0, torch.nan, 1]], dtype=torch.float64)
    objective = Objective.of(Task(kind="binary", outputs=3, metric="roc_auc"), y, balance=balance)
    assert objective.class_weights == (None if weights is None else pytest.approx(weights))
    output = torch.randn(5, 3, dtype=torch.float64)
    loss, _ = objective.loss(output, y)
    yes = torch.ones(3, dtype=torch.float64) if weights is None else torch.tensor(weights, dtype=torch.float64)
    each = torch.nn.functional.binary_cross_entropy_with_logits(
        output + yes.log(), y.nan_to_num(), pos_weight=yes, reduction="none"
    )
    assert float(loss) == pytest.approx(float(each[~y.isnan()].sum()))
    best = objective.constant(y)[[0, 2]].requires_grad_()
    loss, _ = objective.loss(torch.stack([best[0], torch.zeros(()), best[1]]).expand(5, 3), y)
    assert torch.autograd.grad(loss, best)[0].abs().max() < 1e-12


def test_a_predictor_that_has_seen_no_graph_says_the_mean_or_the_frequency() -> None:
    y = torch.tensor([[1.0, 10.0], [2.0, torch.nan], [6.0, 30.0]])
    for scaling in (None, TargetScaling.of(y)):
        objective = Objective(REGRESSION, scaling)
        assert objective.predict(objective.constant(y)).tolist() == pytest.approx([3.0, 20.0])
    labels = torch.tensor([[1.0, 0.0, torch.nan], [0.0, 0.0, torch.nan], [1.0, 0.0, torch.nan], [0.0, 1.0, torch.nan]])
    objective = Objective(BINARY)
    assert objective.predict(objective.constant(labels))[:2].tolist() == pytest.approx([0.5, 0.25])
    objective = Objective(CLASSES)
    assert objective.predict(objective.constant(torch.tensor([1, 1, 3]))).tolist() == pytest.approx(
        [0, 2 / 3, 0, 1 / 3]
    )


def test_a_target_that_never_changes_keeps_its_unit() -> None:
    scaling = TargetScaling.of(torch.tensor([[4.0, torch.nan], [4.0, torch.nan]]))
    assert scaling == TargetScaling((4.0, 0.0), (1.0, 1.0))
    assert TargetScaling.from_dict(scaling.to_dict()) == scaling
