"""The tables of docs/conformance.md are about the requests that there are."""

import re
from collections import Counter

from tests.conformance.scenario import SCENARIOS, SECURED
from tests.conformance.table import DOCUMENT

ROW = re.compile(r"\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (.*) \|")


def test_every_request_is_in_the_table() -> None:
    """Whoever adds a case puts all of them to both again, so that the table is always true; and a
    row with fewer answers than requests names a difference.
    """
    asked = Counter((case.api, case.version) for cases in [*SCENARIOS.values(), *SECURED.values()] for case in cases)
    document = DOCUMENT.read_text()
    rows = ROW.findall(document)
    counted = {(api, int(version)): int(number) for api, version, number, *_ in rows}
    assert counted == asked, "write it anew: python -m tests.conformance.table"
    for api, version, number, *equal, names in rows:
        assert names or set(equal) == {number}, f"{api} v{version} differs without a name"
        for name in re.findall(r"\(#([^)]+)\)", names):
            assert f"### {name}\n" in document
