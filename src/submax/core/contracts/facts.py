"""Facts about policies and estimators that callers rely on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """What a caller has to know about a policy or an estimator beyond what it answers.

    The conformance suite compares ``uses_context`` with what a policy decides in different
    contexts, and tries feedback without propensities on a policy that does not need them.

    - ``uses_context``: answers may differ between contexts. If not, the context is ignored, and one
      answer serves all of them.
    - ``needs_propensities``: learning needs the probabilities with which actions were chosen.
    - ``trains_models``: learning fits a model to all rows that are kept, such as a network, so that
      many rows at a time are better than few.
    - ``forgets``: old feedback counts less than new.
    """

    uses_context: bool = True
    needs_propensities: bool = False
    trains_models: bool = False
    forgets: bool = False
