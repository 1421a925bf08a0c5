"""A policy given by a fitted classifier whose classes are actions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError, one_line
from submax.core.summary import listed
from submax.evaluation.frames import data_frame
from submax.evaluation.targets.checked_probabilities import checked_probabilities
from submax.evaluation.targets.decoded_context import decoded_context
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.schema import Schema


class ClassifierPolicy(TargetPolicy):
    """π(a | x) is the probability that a fitted classifier gives to the class a.

    If the classifier was fitted to a data frame, it gets a data frame with the same columns.
    Otherwise it gets the encoded context: the fields in their order, categories one-hot.
    """

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier
        self.name = type(classifier).__name__
        if not hasattr(classifier, "classes_"):
            raise InputError(
                f"the policy is a {self.name} that is not fitted; a fitted classifier whose "
                "classes are actions is allowed: fit it before, or let a policy learn with it, "
                '{"kind": "reward-conditioned", "estimator": {"kind": "classifier", …}}',
                parameter="policies",
            )

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        names = [choice.name for choice in schema.menu.slots[0].choices]
        classes = [str(one) for one in self._classifier.classes_]
        unknown = [one for one in classes if one not in names]
        if unknown or len(schema.menu.slots) != 1:
            raise InputError(
                f"the classes of {self.name} are {listed(classes)}; the actions of the log, "
                f"{listed(names)}, are allowed: fit it to the names of actions",
                parameter="policies",
            )
        try:
            found = self._classifier.predict_proba(self._inputs(schema, context))
        except Exception as error:
            raise InputError(
                f"{self.name} cannot predict the rows of the log ({one_line(error)}); a classifier "
                f"of the fields {listed(schema.context.names)} is allowed: fit it to these columns",
                parameter="policies",
            ) from error
        table = np.zeros((len(context), len(names)))
        table[:, [names.index(one) for one in classes]] = found
        return checked_probabilities(table, len(context), schema, f"probabilities of {self.name}")

    def _inputs(self, schema: Schema, context: NDArray[np.float32]) -> Any:
        columns = getattr(self._classifier, "feature_names_in_", None)
        if columns is None:
            return context.astype(np.float64)
        return data_frame(decoded_context(schema, context))[list(columns)]
