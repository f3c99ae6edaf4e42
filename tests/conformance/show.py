"""Prints recordings for people: `python -m tests.conformance.show [scenario...]`. One line for all
versions that answer alike.
"""

import json
import re
import sys
from collections import defaultdict
from typing import Any

from tests.conformance.case import Case
from tests.conformance.recording import read_recording
from tests.conformance.scenario import SCENARIOS, SECURED
from tests.support.wire import Body

SAME_EVERYWHERE = {"throttle_time_ms", "brokers", "cluster_id", "controller_id"}
LONG = 12
EVERY = {**SCENARIOS, **SECURED}


def brief(part: Any) -> Any:
    """An answer without what is the same in all of them; long lists are counted, and refused rows
    reduced to code and message.
    """
    if isinstance(part, dict):
        fields = {key: brief(value) for key, value in part.items() if key not in SAME_EVERYWHERE}
        if fields.get("error_code"):
            shown = {key: value for key, value in fields.items() if value not in (None, [], 0, -1)}
            return {**shown, **{key: fields[key] for key in ("error_code", "error_message") if key in fields}}
        return fields
    if isinstance(part, list):
        return f"<{len(part)}>" if len(part) > LONG else [brief(element) for element in part]
    return part


def line(case: Case, answer: Body | None, ended: str) -> str:
    text = ended or json.dumps(brief(answer), ensure_ascii=False)
    return re.sub(
        f'([a-z])-{case.version}"', r'\1-{v}"', re.sub(r'"(topic_id|token_id|hmac)": "[^"]+"', r'"\1": "..."', text)
    )


def show(scenario: str) -> None:
    recording = read_recording(scenario)
    groups: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for case in EVERY[scenario]:
        recorded = recording.outcomes[case.key]
        groups[case.api, case.name][line(case, recorded.answer(case), recorded.ended)].append(case.version)
    sys.stdout.write(f"\n## {scenario}\n\n")
    for (api, name), texts in groups.items():
        for text, versions in texts.items():
            sys.stdout.write(f"- {api} v{','.join(map(str, versions))} [{name}] {text}\n")


if __name__ == "__main__":
    for each in sys.argv[1:] or list(EVERY):
        show(each)
