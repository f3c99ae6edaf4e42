"""Many small cases as few items of pytest.

An item of pytest costs some milliseconds: each of the processes that the tests run in collects it,
and its result is reported. Where thousands of cases take less than that, those that belong together
are one item, which runs them all and reports each that failed.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def grouped(names: str, groups: Mapping[str, Sequence[tuple[Any, ...]]]) -> Callable[[Test], Test]:
    """Run a test with each case of each group, as `pytest.mark.parametrize(names, cases)` would,
    but with one item for each group. A test that fails goes on with the other cases of its group,
    and all of its errors are raised together, each with a note that names its case.
    """
    arguments = names.split(", ")

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(group: str, **fixtures: Any) -> None:
            failures = []
            for case in groups[group]:
                try:
                    test(**dict(zip(arguments, case, strict=True)), **fixtures)
                except Exception as failure:  # noqa: BLE001 (all of them are raised below)
                    failure.add_note(f"The case was {names} = {', '.join(map(repr, case))}")
                    failures.append(failure)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(groups[group])} cases of {group} failed", failures)

        asked = inspect.signature(test).parameters
        group = inspect.Parameter("group", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        fixtures = [parameter for name, parameter in asked.items() if name not in arguments]
        run.__signature__ = inspect.Signature([group, *fixtures])  # type: ignore[attr-defined]
        marked: Test = pytest.mark.parametrize("group", sorted(groups))(run)  # each process collects the same order
        return marked

    return decorate
