"""Writes the outcomes of policy cases as JUnit XML, for continuous integration."""

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from .policy_cases import CaseOutcome

UNSENDABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Matches the characters that XML 1.0 cannot contain."""


def junit(outcomes: Sequence[CaseOutcome]) -> str:
    failed = sum(outcome.failure is not None for outcome in outcomes)
    counts = {"tests": str(len(outcomes)), "failures": str(failed), "errors": "0", "skipped": "0"}
    suites = Element("testsuites", counts)
    suite = SubElement(suites, "testsuite", {"name": "policy", **counts})
    for outcome in outcomes:
        case = SubElement(
            suite,
            "testcase",
            {"classname": _clean(str(outcome.case.file)), "name": _clean(outcome.case.name), "time": "0"},
        )
        if outcome.failure is not None:
            SubElement(case, "failure", {"message": _clean(outcome.failure)}).text = _clean(outcome.failure)
    indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, encoding="unicode")}\n'


def _clean(text: str) -> str:
    return UNSENDABLE.sub("?", text)
