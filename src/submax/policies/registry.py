"""The registry of policies: the class of each kind."""

from typing import Any

from submax.core.policy import Policy
from submax.core.registry import Registry
from submax.estimators import ESTIMATORS
from submax.strategies import STRATEGIES

POLICIES: Registry[Policy[Any]] = Registry(
    "submax.policies",
    Policy,  # type: ignore[type-abstract]  # a contract is abstract
    "policy",
    {
        "actor-critic": "submax.research.rivals.policy_gradient:ActorCritic",
        "adaptive": "submax.policies.adaptive:Adaptive",
        "bayes-reparameterized": "submax.research.rivals.conditioned:BayesReparameterized",
        "bayes-ucb": "submax.policies.ucb:BayesUCB",
        "cascade-kl-ucb": "submax.research.beyond.slates:CascadeKLUCB",
        "climbing-dropout-thompson": "submax.research.rivals.climbing:ClimbingDropoutThompson",
        "climbing-epsilon-greedy": "submax.research.rivals.climbing:ClimbingEpsilonGreedy",
        "dropout-thompson": "submax.research.rivals.neural:DropoutThompson",
        "epsilon-greedy": "submax.policies.epsilon_greedy:EpsilonGreedy",
        "exp3-ix": "submax.research.beyond.adversarial:EXP3IX",
        "fitted-thompson": "submax.research.rivals.bayesian_arms:FittedThompson",
        "fourier-thompson": "submax.research.beyond.real_valued:FourierThompson",
        "gradient": "submax.policies.epsilon_greedy:Gradient",
        "greedy-regression": "submax.policies.greedy_regression:GreedyRegression",
        "gridded": "submax.research.beyond.real_valued:Gridded",
        "hill-climbing-thompson": "submax.research.rivals.climbing:HillClimbingThompson",
        "imed": "submax.policies.ucb:IMED",
        "information-directed": "submax.research.rivals.bayesian_arms:InformationDirected",
        "kl-ucb": "submax.policies.ucb:KLUCB",
        "linear-thompson": "submax.policies.regressions:LinearThompson",
        "linucb": "submax.policies.regressions:LinUCB",
        "logistic-submax": "submax.policies.regressions:LogisticSubMax",
        "moss": "submax.policies.ucb:MOSS",
        "neural-epsilon-greedy": "submax.research.rivals.neural:NeuralEpsilonGreedy",
        "neural-thompson": "submax.research.rivals.neural:NeuralThompson",
        "neural-ucb": "submax.research.rivals.neural:NeuralUCB",
        "per-slot": "submax.policies.slots:PerSlot",
        "policy-gradient": "submax.research.rivals.policy_gradient:PolicyGradient",
        "posterior-greedy": "submax.policies.epsilon_greedy:PosteriorGreedy",
        "posterior-slots": "submax.policies.slots:PosteriorSlots",
        "posterior-submax": "submax.policies.regressions:PosteriorSubMax",
        "predictive-mixture": "submax.policies.adaptive:PredictiveMixture",
        "random": "submax.policies.epsilon_greedy:Random",
        "relative-ucb": "submax.research.beyond.duels:RelativeUCB",
        "reward-conditioned": "submax.policies.reward_conditioned:RewardConditioned",
        "sample-average-sampling": "submax.research.rivals.neural:SampleAverageSampling",
        "sample-average-ucb": "submax.research.rivals.neural:SampleAverageUCB",
        "slot-by-slot": "submax.policies.slots:SlotBySlot",
        "tempered": "submax.policies.greedy_regression:Tempered",
        "thompson": "submax.policies.thompson:Thompson",
        "top-two-thompson": "submax.research.beyond.identification:TopTwoThompson",
        "track-and-stop": "submax.research.beyond.identification:TrackAndStop",
        "ucb1": "submax.policies.ucb:UCB1",
        "variance-network-ucb": "submax.research.rivals.neural:VarianceNetworkUCB",
    },
)

PARTS: dict[str, Registry[Any]] = {
    "estimator": ESTIMATORS,
    "strategy": STRATEGIES,
    "policy": POLICIES,
    "policies": POLICIES,
}
"""The registries of the parameters that are estimators, strategies or policies themselves."""
