"""Estimate, from a random log, what another policy earned, and compare it with what it did earn.

The Open Bandit Dataset (Saito, Aihara, Matsutani and Narita, 2021) has logs of two policies that
recommended fashion items on the same pages in the same week: one chose uniformly at random, the
other by Bernoulli Thompson sampling (bts). A small part of it, 10,000 rows of each policy in three
campaigns, is inside the package obp 0.4.1. Its own requirements are not needed:

    pip install --no-deps obp==0.4.1
    python examples/open_bandit.py

A folder with the same layout (POLICY/CAMPAIGN/CAMPAIGN.csv) can be given as an argument.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from submax.evaluation import Log, compare

CAMPAIGNS = ("all", "men", "women")
COLUMNS = {
    "action": "item_id",
    "reward": "click",
    "propensity": "propensity_score",
    "context": ["position"],
    "time": "timestamp",
}
ESTIMATORS = ("ips", "snips", "dr")


def installed_folder():
    """Return the folder of the data inside the package obp, which is not imported."""
    package = find_spec("obp")
    if package is None or package.origin is None:
        sys.exit("The package obp is not installed: pip install --no-deps obp==0.4.1")
    return Path(package.origin).parent / "dataset" / "obd"


def read(folder, policy, campaign, items=None):
    """Return a log of a policy; the position on the page is a category of the context."""
    context = {"position": {"values": ["1", "2", "3"]}}
    path = folder / policy / campaign / f"{campaign}.csv"
    return Log.read(path, columns=COLUMNS, context=context, rewards="binary", actions=items)


def frequencies(log, items):
    """Return how often a log showed each item at each position: its policy, averaged over time."""
    counts = np.zeros((3, items))
    np.add.at(counts, (log.context[:, 0].astype(int), log.action[:, 0].astype(int)), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def main(folder):
    """Print, for every campaign, the estimates from the random log beside the on-policy mean."""
    print(f"{'campaign':9} {'random log':>25} {'bts, on policy':>25}", end="")
    print("".join(f" {f'bts by {name}':>25}" for name in ESTIMATORS))
    for campaign in CAMPAIGNS:
        random = read(folder, "random", campaign)
        names = [choice.name for choice in random.schema.menu.slots[0].choices]
        bts = read(folder, "bts", campaign, names)
        table = frequencies(bts, len(names))
        policy = {"bts": table[random.context[:, 0].astype(int)]}
        found = compare(random, policy, estimators=list(ESTIMATORS))
        uniform = np.full((len(bts), len(names)), 1 / len(names))
        on_policy = compare(bts, {"even": uniform}, estimators=["ips"]).estimates[0]
        shown = [found.estimates[0], on_policy, *(found.find("bts", one) for one in ESTIMATORS)]
        cells = (
            f"{100 * one.value:.2f} % [{100 * one.interval.low:.2f}, {100 * one.interval.high:.2f}]"
            for one in shown
        )
        print(f"{campaign:9}" + "".join(f" {cell:>25}" for cell in cells))
        for sentence in dict.fromkeys(text for one in shown for text in one.cautions):
            print(f"    {sentence}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else installed_folder())
