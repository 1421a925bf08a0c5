"""Makes the model of the next version: from the last model and the new rows, if possible."""

import logging
from typing import Any, NamedTuple

import numpy as np

from submax.bandit.settings import Settings
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.serialization import modules_of, read_state, state_bytes
from submax.live.background import BACKGROUND
from submax.live.fitting.learning_state import LearningState
from submax.live.fitting.training.cannot_start_error import CannotStartError
from submax.live.fitting.training.training_job import TrainingJob
from submax.live.fitting.training.training_process import TrainingProcess
from submax.live.log.records import Fitted
from submax.live.log.rows.lazy_rows import LazyRows
from submax.live.store.store import Store
from submax.policies.specification import PolicySpecification
from submax.schema.model import Model, hash_of
from submax.schema.schema import Schema

LOG = logging.getLogger("submax")
TRAINED_ROWS = 100_000
"""Rows that a policy which trains a model on all rows, such as a network, is given: the last ones.
Training on more takes minutes, and hardly changes a decision."""
TRAINED_NUMBERS = 2**24
"""Numbers in the contexts of these rows, 64 MB as float32: with more than 167 in a context, fewer
rows."""
STANDARDIZED_ROWS = 100_000
"""Up to this many rows, a model is fitted from scratch whenever the rows have doubled, so that the
numbers of contexts are standardized by new means and deviations. Beyond it these hardly change."""
MAX_STATE_BYTES = 2**26
"""A larger learning state is not written to the store; it is then computed from the log."""


class FitInput(NamedTuple):
    """Everything that a fit depends on; see ``Fitted`` for ``learned``, ``read`` and ``ahead``.

    ``versions`` are those fitted so far. ``outdated`` says that the newest of them was fitted for
    other choices or by another policy. ``specification`` is that of the ``policy``.
    """

    settings: Settings
    specification: PolicySpecification
    schema: Schema
    policy: Policy[Any]
    rows: LazyRows
    rows_hash: str
    versions: dict[int, Fitted]
    outdated: bool
    learned: int
    read: int
    ahead: int


class VersionFitter:
    """Keeps the learning state of the newest version.

    A version is usually an update of the one before it, with the rows in between. It is fitted
    from scratch, to all rows, if choices or the policy changed, if the rows have doubled while
    they are few, and if the policy trains a model on all rows, which is then given the last ones.
    After a restart the learning state is read from the store, or computed again from the log: a
    version records from which one it was made, so the same log always gives the same models.

    A policy that trains a model is fitted by the ``training`` process, if there is one and it can
    be started. Only a policy that was given as an object is always fitted here, because another
    process could not make it. Both ways give the same bytes.
    """

    def __init__(self, store: Store, name: str, training: TrainingProcess | None = None) -> None:
        self._store, self._name, self._training = store, name, training
        self._state: LearningState | None = None

    def fit(self, given: FitInput) -> tuple[Model, int]:
        """Return the model of the next version, and the version that it is an update of, or 0."""
        if given.policy.traits.trains_models:
            return self._trained(given), 0
        with BACKGROUND:
            return self._learned(given)

    def _learned(self, given: FitInput) -> tuple[Model, int]:
        """Return the model of the next version, an update of the last one if possible."""
        state = None if given.outdated else self._newest(given)
        if state is None or _doubled(given, state):
            model, base, scratch_rows = _from_scratch(given, given.rows), 0, given.rows.count
        else:
            model = _updated(given, state, given.rows.count, given.settings.seed, given.ahead)
            base, scratch_rows = state.version, state.scratch_rows
        number = max(given.versions, default=0) + 1
        self._state = LearningState(number, given.rows.count, scratch_rows, model)
        return model, base

    def must_wait(self, given: FitInput) -> bool:
        """Whether a fit would wait, because the training process works on another one."""
        training = self._training_for(given)
        return training is not None and training.busy

    def _trained(self, given: FitInput) -> Model:
        """Return the model that a policy trains on the last rows."""
        rows, training = given.rows.last(_trained_rows(given)), self._training_for(given)
        if training is None:
            return _from_scratch(given, rows)
        seed, ahead = given.settings.seed, given.ahead
        job = TrainingJob(given.specification.data, given.schema, seed, ahead)
        try:
            data = training.train(job, rows)
        except CannotStartError as error:
            LOG.warning("%s: models are trained in the process that decides: %s", self._name, error)
            self._training = None
            return _from_scratch(given, rows)
        return Model.from_bytes(data, hash_of(data), given.policy)

    def _training_for(self, given: FitInput) -> TrainingProcess | None:
        """Return the training process if the policy is to be trained there."""
        here = given.specification.is_object or not given.policy.traits.trains_models
        return None if here else self._training

    def write_state(self) -> None:
        """Write the learning state to the store, so that a restart need not compute it."""
        if self._state is None:
            return
        data = state_bytes(self._state, {}, for_learning=True)
        if len(data) <= MAX_STATE_BYTES:
            self._store.put_blob(self._blob, data)

    @property
    def _blob(self) -> str:
        return f"{self._name}/learning"

    def _newest(self, given: FitInput) -> LearningState | None:
        """Return the learning state of the newest version; None if it cannot be known."""
        if not given.versions:
            return None
        newest = max(given.versions)
        if self._state is None or self._state.version != newest:
            self._state = self._restored(given, newest)
        return self._state

    def _restored(self, given: FitInput, newest: int) -> LearningState | None:
        """Return the learning state of a version, from the store or from the log."""
        chain = [newest]
        while given.versions[chain[-1]].base:
            chain.append(given.versions[chain[-1]].base)
        state = self._read(given.policy, chain, given.versions) or _first(given, chain[-1])
        if state is None:
            return None
        for number in reversed(chain[: chain.index(state.version)]):
            fitted = given.versions[number]
            model = _updated(given, state, fitted.rows, fitted.seed, fitted.ahead)
            state = LearningState(number, fitted.rows, state.scratch_rows, model)
        if hash_of(state.model.to_bytes()) == given.versions[newest].model:
            return state
        LOG.warning(
            "%s: version %d cannot be computed again from its log, so the next one is fitted to "
            "all rows; other versions of libraries can be the cause",
            self._name,
            newest,
        )
        return None

    def _read(
        self, policy: Policy[Any], chain: list[int], versions: dict[int, Fitted]
    ) -> LearningState | None:
        """Return the state in the store if it belongs to one of these versions."""
        data = self._store.get_blob(self._blob)
        try:
            state = None if data is None else read_state(data, modules_of(policy))[0]
        except InputError:
            return None
        if not isinstance(state, LearningState) or state.version not in chain:
            return None
        same = hash_of(state.model.to_bytes()) == versions[state.version].model
        return state if same else None


def _first(given: FitInput, number: int) -> LearningState | None:
    """Fit the version of this number again from scratch; None if it was learned elsewhere."""
    fitted = given.versions[number]
    if fitted.read == 0 or fitted.rows > given.rows.count:
        return None
    rows = given.rows.between(0, fitted.rows)
    model = Model.fitted(given.schema, given.policy, rows, fitted.seed, fitted.ahead)
    return LearningState(number, fitted.rows, fitted.rows, model)


def _from_scratch(given: FitInput, rows: LazyRows) -> Model:
    return Model.fitted(given.schema, given.policy, rows, given.settings.seed, given.ahead)


def _updated(given: FitInput, state: LearningState, rows: int, seed: int, ahead: int) -> Model:
    """Return the model after the rows from those of the state up to number ``rows``."""
    model, rng = state.model, np.random.default_rng([seed, rows])
    for part in given.rows.between(state.rows, rows):
        model = model.updated(given.schema, given.policy, part, rng, ahead)
    return model


def _doubled(given: FitInput, state: LearningState) -> bool:
    """Whether the rows have doubled, so that numbers of the context are standardized again."""
    if not any(given.schema.context.numeric):
        return False
    return 2 * state.scratch_rows <= given.rows.count <= STANDARDIZED_ROWS


def _trained_rows(given: FitInput) -> int:
    return min(TRAINED_ROWS, TRAINED_NUMBERS // max(1, given.schema.context.width))
