"""The peer of the back-test: one Python process that reads the audit files in order and asks the
policy again, without Spark.

Rule: the same replay and the same judge as everywhere; what differs is only who carries the events
to them.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

from minicontroller.audit.event import Decision, decode
from minicontroller.audit.replay import Replay
from minicontroller.policies.judging import PolicyJudge
from minicontroller.policies.loading import POLICY_KEY, build_policy, is_rule_file
from minicontroller.policies.rules.ruleset import read_rule_files


def replayed(folder: Path, judge: PolicyJudge) -> Iterator[tuple[Decision, bool]]:
    """Each decision that the policy is asked again, and whether it allows now."""
    replays: dict[str, Replay] = {}
    for file in sorted(folder.glob("*.ndjson")):  # names sort as things happened
        with file.open("rb") as lines:
            for line in lines:
                event = decode(line)
                replay = replays.get(event.cluster_id)
                if replay is None:
                    replay = replays[event.cluster_id] = Replay()
                if isinstance(event, Decision) and (asked := replay.question(event)) is not None:
                    yield event, judge.judge(*asked).decision.value == "allowed"
                for fault in replay.apply(event):
                    raise AssertionError(fault)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("policy", help="A file of rules, or a class as FILE.py:CLASS.")
    options = parser.parse_args()
    if is_rule_file(options.policy):
        judge = PolicyJudge(rules=read_rule_files([Path(options.policy)]))
    else:
        judge = PolicyJudge(build_policy({POLICY_KEY: options.policy}))
    began = time.perf_counter()
    questions = denied = allowed = 0
    for event, allows in replayed(options.folder, judge):
        questions += 1
        allowed_then = event.policy is None or event.policy.decision == "allowed"
        denied += allowed_then and not allows
        allowed += allows and not allowed_then
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "questions": questions, "newly_denied": denied, "newly_allowed": allowed}))


if __name__ == "__main__":
    main()
