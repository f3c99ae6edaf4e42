"""Bugs in what clients are answered."""

from typing import Any

import msgspec

from minicontroller.admin.configs import alterations
from minicontroller.cluster.delta import (
    EntitiesChanged,
    PartitionsChanged,
    TopicBecomes,
    TopicConfigured,
    TopicMarked,
)
from minicontroller.cluster.errors import Refusal
from minicontroller.controller.active import jobs, writer
from minicontroller.controller.handlers import changes, create_topics
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_configs import AlterConfigsResource
from tests.faults.planted import planting


@planting.planted(troubles=("unheard_by_zookeeper",))
def doubt_is_success() -> None:
    """What was on its way when the connection broke is answered with success, whatever the tree
    shows then.
    """
    for kind in (TopicBecomes, TopicMarked, TopicConfigured, PartitionsChanged, EntitiesChanged):
        planting.put_in(kind, "holds", lambda _delta, _image: True)


@planting.planted(troubles=("unheard_by_zookeeper",))
def answered_before_it_is_safe() -> None:
    """A change of configs is answered when it is planned, and its commit travels meanwhile."""
    done = jobs.WriterJob.__dict__["result"]

    def early(job: Any, result: Any) -> None:
        done.__set__(job, result)
        if result is not None:
            job.done.set()

    planting.put_in(jobs.WriterJob, "result", property(done.__get__, early))


@planting.planted(troubles=("false_marks",))
def refused_and_written() -> None:
    """One in twenty requests is written and then refused."""
    committed, now = changes.committed, planting.every(20)

    async def refused(*arguments: Any, **named: Any) -> Any:
        outcome = await committed(*arguments, **named)
        if now() and any(change.element is not None and change.refusal is None for change in outcome):
            raise Refusal(ErrorCode.NOT_CONTROLLER)
        return outcome

    planting.put_in(changes, "committed", refused)


@planting.planted(troubles=("false_marks",))
def validation_writes() -> None:
    """CreateTopics that should only validate creates."""
    init = create_topics.CreationPlanner.__init__

    def writing(planner: Any, port: Any, context: Any, request: Any, *others: Any) -> None:
        init(planner, port, context, msgspec.structs.replace(request, validate_only=False), *others)

    planting.put_in(create_topics.CreationPlanner, "__init__", writing)


@planting.planted(troubles=("false_marks",))
def legacy_keeps_the_rest() -> None:
    """AlterConfigs leaves alone what it does not name."""
    altered = alterations.altered

    def keeping(before: Any, resource: Any, key_of: Any) -> Any:
        after = altered(before, resource, key_of)
        return {**before, **after} if isinstance(resource, AlterConfigsResource) else after

    planting.put_in(alterations, "altered", keeping)


@planting.planted(troubles=("unanswered_by_zookeeper",))
def doubt_is_failure() -> None:
    """What was on its way when the connection broke is answered as if it had not been done."""
    resolve = writer.Writer._resolve

    def sure(owner: Any, image: Any, elements: Any) -> None:
        for element in elements:
            if not element.completed and element.refusal is None:
                element.refusal = Refusal(ErrorCode.INVALID_UPDATE_VERSION)
        resolve(owner, image, elements)

    planting.put_in(writer.Writer, "_resolve", sure)
