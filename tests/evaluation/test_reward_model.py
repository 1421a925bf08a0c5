import numpy as np
import pytest

from submax.evaluation import encoded_parts, ridge_design
from submax.evaluation.log import Log
from submax.evaluation.reward_features import RewardFeatures
from submax.evaluation.reward_model import FOLDS, POWERS, fitted_models, fold_numbers, real_parts
from submax.evaluation.ridge_design import CONSTANT_PENALTY, PENALTY

ROWS = 80
MENUS = {
    "arms": ["A", "B", "C"],
    "slots": {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]},
    "price": {"price": (2, 10)},
    "arms and price": {"title": ["A", "B"], "price": (2, 10)},
    "slots and two prices": {"title": ["A", "B"], "layout": ["x", "y"], "p": (0, 1), "q": (-1, 1)},
}


def log_of(actions, seed):
    rng = np.random.default_rng(seed)
    slots = actions if isinstance(actions, dict) else {"": actions}
    table = {}
    for name, given in slots.items():
        column = f"action_{name}" if name else "action"
        if isinstance(given, tuple):
            table[column] = rng.uniform(*given, ROWS)
        else:
            table[column] = np.array(given)[rng.integers(len(given), size=ROWS)]
    table |= {"reward": rng.normal(50.0, 3.0, ROWS), "context_x": rng.normal(3.0, 2.0, ROWS)}
    table["context_c"] = np.array(["u", "v"])[rng.integers(2, size=ROWS)]
    return Log.read(table, actions=actions, context={"x": float, "c": ["u", "v"]})


def rows_of(log):
    """Features of every row by hand: the number standardized, the category as 0 and 1, waves."""
    number, category = log.context.astype(np.float64).T
    x = np.column_stack([(number - number.mean()) / number.std(), category == 0, category == 1])
    _, directions, phases = RewardFeatures.of(log)
    waves = [
        [2**0.5 * np.cos(row @ one + b) for one, b in zip(directions.T, phases, strict=True)]
        for row in x
    ]
    return np.column_stack([np.ones(ROWS), x, np.reshape(waves, (ROWS, -1))])


def dense(log, interacting):
    """The design row by row, and the penalty of each column."""
    menu, features = log.schema.menu, rows_of(log)
    width = features.shape[1]
    slopes = [CONSTANT_PENALTY, *[PENALTY] * (width - 1)]
    sizes = [len(slot.choices) for slot in menu.slots]
    penalty = (slopes if interacting else [CONSTANT_PENALTY]) * sum(sizes)
    penalty += ([] if interacting else slopes) + [1.0] * POWERS * len(menu.intervals)
    matrix = []
    for action, seen in zip(log.action, features, strict=True):
        row = []
        for size, chosen in zip(sizes, action, strict=False):
            for number in range(size):
                block = seen if interacting else seen[:1]
                row += list(block * (number == chosen))
        row += [] if interacting else list(seen)
        scaled = [
            (value - one.low) / (one.high - one.low)
            for value, one in zip(action[len(sizes) :], menu.intervals, strict=True)
        ]
        row += [value**power for power in range(1, POWERS + 1) for value in scaled]
        matrix.append(row)
    return np.array(matrix), np.array(penalty)


def predictions(log, interacting):
    """Every row by least squares on the rows of the other folds."""
    matrix, penalty = dense(log, interacting)
    fold, found = fold_numbers(ROWS), np.empty(ROWS)
    for number in range(FOLDS):
        others, mine = fold != number, fold == number
        mean = log.reward[others].mean()
        augmented = np.vstack([matrix[others], np.diag(np.sqrt(penalty))])
        target = np.concatenate([log.reward[others] - mean, np.zeros(len(penalty))])
        solution = np.linalg.lstsq(augmented, target, rcond=None)[0]
        found[mine] = mean + matrix[mine] @ solution
    return found


def predicted(log):
    features_of = RewardFeatures.of(log)
    (part,) = log.parts
    features, scaled = features_of.rows(part.context), real_parts(log, part.action)
    models = fitted_models(log, features_of)
    every = [model.predict(features, part.action, scaled) for model in models]
    return np.choose(fold_numbers(ROWS), every)


@pytest.mark.parametrize("actions", MENUS.values(), ids=MENUS)
def test_the_model_is_penalized_least_squares_on_the_other_folds(actions, seed):
    log = log_of(actions, seed)
    interacting = bool(log.schema.menu.slots)
    np.testing.assert_allclose(predicted(log), predictions(log, interacting), rtol=1e-5)


@pytest.mark.parametrize("name", ["slots", "arms and price", "slots and two prices"])
def test_with_many_unknowns_the_slopes_are_shared(name, monkeypatch, seed):
    monkeypatch.setattr(ridge_design, "MOST_UNKNOWNS", 1)
    log = log_of(MENUS[name], seed)
    np.testing.assert_allclose(predicted(log), predictions(log, interacting=False), rtol=1e-5)


@pytest.mark.parametrize("name", ["arms", "slots and two prices"])
def test_sums_over_parts_are_sums_over_all(name, monkeypatch, seed):
    log = log_of(MENUS[name], seed)
    features_of = RewardFeatures.of(log)
    whole = fitted_models(log, features_of)
    monkeypatch.setattr(encoded_parts, "ROWS", 7)
    for one, other in zip(whole, fitted_models(log, features_of), strict=True):
        for mine, theirs in zip(one.slots, other.slots, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-9)
        np.testing.assert_allclose(one.powers, other.powers, atol=1e-9)
        assert one.mean == other.mean


def test_what_a_slot_adds_is_told_for_every_choice(seed):
    log = log_of(MENUS["slots"], seed)
    features_of = RewardFeatures.of(log)
    model = fitted_models(log, features_of)[0]
    features = features_of.rows(log.parts[0].context)
    title, layout = model.scores(features)
    for action in np.ndindex(3, 2):
        told = model.predict(features, np.tile(action, (ROWS, 1)), np.zeros((ROWS, 0)))
        added = model.base(features) + title[:, action[0]] + layout[:, action[1]]
        np.testing.assert_allclose(told, added)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_log_of_few_rows_has_a_model_too(count):
    log = log_of(MENUS["arms"], 0).rows(np.arange(count))
    features_of = RewardFeatures.of(log)
    for model in fitted_models(log, features_of):
        assert np.isfinite(model.mean)
        assert np.isfinite(model.slots[0]).all()
