"""Properties of policies and estimators that callers rely on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """Properties of a policy or an estimator that cannot be seen from its methods.

    - ``uses_context``: decisions may differ between contexts. If not, the context is ignored, and
      one table of probabilities serves all contexts.
    - ``needs_propensities``: learning needs the probabilities with which actions were chosen.
    - ``trains_models``: every update fits a model, such as a network, to all stored rows. Callers
      should therefore pass many rows at a time.
    - ``forgets``: old feedback counts less than new feedback, or not at all.
    - ``needs_pairs``: actions must be pairs of the same arms, ``Slots((K, K))``, and a reward says
      whether the first one won, as in duels.
    - ``learns``: feedback changes decisions. Uniform choice is a baseline that does not learn.

    The conformance suite checks the first two of a policy: it compares decisions in different
    contexts, and passes feedback without propensities if they are not needed. If an estimator does
    not forget, the suite checks that the order of feedback does not change the level prior.
    """

    uses_context: bool = True
    needs_propensities: bool = False
    trains_models: bool = False
    forgets: bool = False
    needs_pairs: bool = False
    learns: bool = True
