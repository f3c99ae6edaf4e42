"""The forms that a topic may have, as far as its only administrator can tell from the answers.

An answer keeps the forms from which it could have been given, each with the change applied; an
answer in doubt keeps each form both with and without the change. An answer that fits no form is a
fault.
"""

from collections.abc import Callable

import msgspec
from immutables import Map

from minicontroller.protocol.error_codes import ErrorCode

DOUBTFUL = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER}
"""Whoever gets one of these cannot know what became of his wish."""


class Form(msgspec.Struct, frozen=True):
    """A topic that is there."""

    partitions: int
    configs: Map[str, str] = Map()


Outcomes = dict[int, Form | None]
"""By error code: the form afterwards, None for no topic. Only the codes that the form before can
give.
"""

Wish = Callable[[Form | None], Outcomes]


class PossibleTopic:
    """All forms that it may have."""

    def __init__(self) -> None:
        self.forms: set[Form | None] = {None}
        self._is_leaving = False
        """It was to be deleted before, and may still be on its way out when it is gone for clients.
        """

    def answered(self, code: int, wish: Wish) -> None:
        """Raises AssertionError if none of the forms gives such an answer."""
        before = self.forms
        if code in DOUBTFUL:
            self.forms = before | {wish(form).get(ErrorCode.NONE, form) for form in before}
        else:
            self.forms = {wish(form)[code] for form in before if code in wish(form)}
        assert self.forms, f"{ErrorCode(code).name} where the topic can only be one of {before}"

    def creation(self, partitions: int) -> Wish:
        def of(form: Form | None) -> Outcomes:
            if form is not None:
                return {ErrorCode.TOPIC_ALREADY_EXISTS: form}
            outcomes: Outcomes = {ErrorCode.NONE: Form(partitions), ErrorCode.INVALID_REPLICATION_FACTOR: None}
            if self._is_leaving:
                outcomes[ErrorCode.TOPIC_ALREADY_EXISTS] = None
            return outcomes

        return of

    def deletion(self) -> Wish:
        was_leaving, self._is_leaving = self._is_leaving, True

        def of(form: Form | None) -> Outcomes:
            if form is not None:
                return {ErrorCode.NONE: None}
            outcomes: Outcomes = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: None}
            if was_leaving:
                outcomes[ErrorCode.NONE] = None
            return outcomes

        return of

    def growth(self, partitions: int) -> Wish:
        def of(form: Form | None) -> Outcomes:
            if form is None:
                outcomes: Outcomes = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: None}
                if self._is_leaving:
                    outcomes[ErrorCode.INVALID_TOPIC_EXCEPTION] = None
                return outcomes
            if partitions <= form.partitions:
                return {ErrorCode.INVALID_PARTITIONS: form}
            grown = Form(partitions, form.configs)
            return {ErrorCode.NONE: grown, ErrorCode.INVALID_REPLICATION_FACTOR: form}

        return of

    def configuration(self, change: Callable[[Map[str, str]], Map[str, str]]) -> Wish:
        def of(form: Form | None) -> Outcomes:
            if form is None:
                return {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: None}
            return {ErrorCode.NONE: Form(form.partitions, change(form.configs))}

        return of
