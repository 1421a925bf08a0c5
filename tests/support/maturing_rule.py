"""What becomes of decisions, as a loop over single acts: the rule that bandits must follow."""

import math

COMBINED = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "max": max,
    "sum": sum,
}
QUARANTINE = 300.0
PARTS = {"click": 1, "buy": 20}


def by_the_rule(declared, acts, clock):
    """What became of each decision until a time: (matures, n, id, status, reward, done).

    ``acts`` are (verb, id, time, details), and ``done`` is the place of the act at which the
    decision matured, -1 if its time was over.
    """
    found = []
    for n, (kind, name, at, details) in enumerate(acts):
        if kind != "decide":
            continue
        end = at + declared.longest_wait
        keys, rewards = set(), []
        early = [one for one in acts[:n] if one[:2] == ("reward", name)]
        for _, _, came, (key, value, parts) in early:
            if came + QUARANTINE > at and key not in keys:
                keys.add(key)
                rewards.append(((at, n), value, parts))
        starts = [(at, n)] if details["activated"] is not None else []
        for place, (verb, other, came, what) in enumerate(acts):
            if place <= n or other != name or came >= end:
                continue
            if verb == "reward" and what[0] not in keys:
                keys.add(what[0])
                rewards.append(((came, place), *what[1:]))
            elif verb == "activate":
                starts.append((came, place))
        values, complete = [value for _, value, _ in rewards], (math.inf, -1)
        reward = COMBINED[declared.combine](values) if values else None
        if declared.reward_parts is not None:
            by_name = {name: [] for name in PARTS}
            for came, _, parts in rewards:
                for part, value in parts.items():
                    by_name[part].append(value)
                if all(by_name.values()):
                    complete = min(complete, came)
            known = {
                name: COMBINED[declared.combine](all_) for name, all_ in by_name.items() if all_
            }
            reward = sum(PARTS[name] * value for name, value in known.items()) if known else None
        elif rewards:
            complete = rewards[0][0]
        matures, done = end, -1
        if declared.reward_wait == 0 and starts:
            matures, done = min((end, -1), max(complete, starts[0]))
        status = "learned"
        if not starts:
            status = "never activated"
        else:
            reward = declared.default_reward if reward is None else reward
            if details["assignment"] == "holdout":
                status = "held out"
            elif details["paused"]:
                status = "paused"
            elif reward is None:
                status = "without reward"
        if matures > clock:
            matures, status = math.inf, "pending"
        found.append((matures, n, name, status, reward, done))
    return sorted(found)
