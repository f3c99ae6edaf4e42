"""Faults that let a change past the rules, or a false event into the log. The races find each.

`python -m tests.gateway.judging.plants` plants one after the other, and counts the races that find
it; `RACES=100` is how many are run of each.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from minicontroller.client.network import BrokerLink
from minicontroller.gateway.judging import automatic, review
from minicontroller.gateway.judging.cluster_reader import ClusterReader
from minicontroller.gateway.judging.forms import FORMS, alter_configs
from minicontroller.gateway.judging.forms.parted import PartedForm, inquire
from minicontroller.gateway.judging.judged import NO_POLICY, Form, Judged, NotSeen, Part
from minicontroller.gateway.judging.review import Reviewer
from minicontroller.policies.rules.facts import Facts


class Plant(msgspec.Struct, frozen=True):
    """What is replaced, and by what."""

    owner: object
    name: str
    fault: object

    def put(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(self.owner, self.name, self.fault)


def _passed(part: Part, refusal: Any, refuse: Callable[..., None] = Part.refuse) -> None:
    if isinstance(refusal, NotSeen):
        part.pass_unjudged(NO_POLICY)
    else:
        refuse(part, refusal)


async def _any_broker(
    reader: ClusterReader, choose: Callable[[ClusterReader], Awaitable[BrokerLink]] = ClusterReader._chosen
) -> BrokerLink:
    reader._source = None
    return await choose(reader)


def _left(judged: Judged) -> bool:
    judged.parts = [each for each in judged.parts if not each.is_there]
    return bool(judged.passed)


def _in_earnest(judged: Judged, unseen: Sequence[Part]) -> Any:
    places = [place for each in unseen for place in each.places]
    assert isinstance(judged.form, PartedForm)
    return judged.form.only(judged.request, places)


def _inquiring(form: Form) -> Form:
    if not isinstance(form.inquire, partial):
        return form
    return replace(form, inquire=partial(inquire, _in_earnest))


PLANTS: Mapping[str, Plant] = {
    "what was not seen passes": Plant(Part, "refuse", _passed),
    "an inquiry has an effect": Plant(review, "FORMS", {key: _inquiring(form) for key, form in FORMS.items()}),
    "any broker is read": Plant(ClusterReader, "_chosen", _any_broker),
    "exemption by an old reading": Plant(Facts, "_state_may_be_old", False),
    "APPEND goes on as it is": Plant(alter_configs, "stated_form", lambda *_: None),
    "creation again by Metadata": Plant(Reviewer, "_asked_only", lambda *_: None),
    "creation again beside another": Plant(automatic, "leave_new_topics", _left),
}


def main() -> None:
    from tests.gateway.judging.test_races import raced

    races = int(os.environ.get("RACES", "100"))
    for name, plant in PLANTS.items():
        with pytest.MonkeyPatch.context() as patch:
            plant.put(patch)
            found = [wrong for seed in range(races) if (wrong := raced(Random(seed)))]
        print(f"{name}: found by {len(found)} of {races} races", *found[:1], flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
