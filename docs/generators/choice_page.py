"""Write the tree and the tables of docs/how-to/choose-a-policy.md from the rules: ``make docs``."""

import re
from pathlib import Path

from choice_tree import mermaid

from submax.recommendation.published_evidence import PublishedEvidence
from submax.recommendation.rule_table import Rule, RuleTable, rule_table
from submax.recommendation.snippets import policies_toml

PAGE = Path(__file__).parents[1] / "how-to" / "choose-a-policy.md"


def with_tables(text: str) -> str:
    """The page with its generated parts, which stand between two equal comments, written anew."""
    table = rule_table()
    parts = {"tree": f"```mermaid\n{mermaid(table)}\n```", "rules": _rules(table)}
    for name, part in parts.items():
        mark = f"<!-- {name} -->"
        pattern = re.compile(f"{mark}\n.*?\n{mark}", flags=re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{PAGE.name} has no two comments {mark}: add them")
        text = pattern.sub(lambda _, new=f"{mark}\n\n{part}\n\n{mark}": new, text)
    return text


def _rules(table: RuleTable) -> str:
    return "\n\n".join(_rule(rule, table) for rule in table.rules)


def _rule(rule: Rule, table: RuleTable) -> str:
    lines = [
        f"### {rule.name}",
        f"**{rule.title('policy')}.** {rule.reason}",
        f"*Runner-up: {rule.title('runner_up')}.* {rule.runner_up_reason}",
        "\n".join(f"- {_measured(table.evidence[name])}" for name in rule.evidence),
        f"*Not tested.* {' '.join(rule.untested)}",
    ]
    if not isinstance(rule.policy, str):
        lines.append(f"```toml\n{policies_toml(rule.policy, rule.runner_up)}\n```")
    return "\n\n".join(lines)


def _measured(evidence: PublishedEvidence) -> str:
    page = evidence.page.removeprefix("docs/")
    return f"{evidence} ([page](../{page}))"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
