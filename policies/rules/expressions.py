"""`[[rule]]`: a condition in CEL that requests must meet.

Rule: keys have the names of Kubernetes' ValidatingAdmissionPolicy if it has the same thing (match
conditions, message expression). A condition that is false is an objection; a condition that fails
denies.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import cel
import msgspec

from .checking import Checked, ExpressionFaults, check
from .facts import Facts, FieldRead, field_read
from .rule import Judge, Rule, Scope, read_scope
from .tables import TomlTable
from .vocabulary import ABSENT, ADMIN, BOOL, CREATED, FLAT, GROUPS, OPERATIONS, STRING, Type

UNDEFINED = "Undefined variable or function: '"
"""The engine's message for a variable that it was not given begins so."""


class NotBooleanError(Exception):
    """The value of a condition is neither true nor false."""


class AbsentFieldError(Exception):
    """An expression reads a field that this request does not have."""


class Expression(msgspec.Struct, frozen=True):
    key: str
    checked: Checked
    program: cel.Program
    reads: tuple[FieldRead, ...]

    def value(self, facts: Facts) -> Any:
        context = facts.given(self.reads)
        try:
            return self.program.execute(context)
        except RuntimeError as error:
            name, quote, _ = str(error).partition(UNDEFINED)[2].partition("'")
            variable, *rest = name.split(FLAT)
            if not (quote and rest):
                raise
            # The name is variable, field, and the entry's key in hexadecimal, joined by FLAT.
            entry = f'["{bytes.fromhex(rest[1]).decode()}"]' if len(rest) == 2 else ""
            raise AbsentFieldError(f"{variable}.{rest[0]}{entry} is not there") from None

    def holds(self, facts: Facts) -> bool:
        value = self.value(facts)
        if value is not True and value is not False:
            raise NotBooleanError(f"{self.key} gave {value!r:.100}")
        return value


def read_rule(table: TomlTable) -> Rule:
    scope = read_scope(table, None)
    applies = [
        _expression(table, scope, text, BOOL, *table.at("match_conditions", index))
        for index, text in enumerate(table.texts("match_conditions") or ())
    ]
    condition = _of(table, scope, "condition", BOOL)
    if condition is None and not table.has("condition"):
        table.note("the rule has no condition")
    message = _of(table, scope, "message_expression", STRING)
    if table.has("message") and table.has("message_expression"):
        table.note("message stands beside message_expression, which makes the message: leave one out", "message")
    table.text("description")
    table.finish()
    sound = [expression for expression in (*applies, condition, message) if expression is not None]
    _check_presence(table, scope, sound)
    reads = frozenset(read for expression in sound for read in expression.checked.fields)
    conditions = [expression for expression in applies if expression is not None]
    return scope.rule(_judge(scope, conditions, condition, message), reads)


def _of(table: TomlTable, scope: Scope, key: str, wanted: Type) -> Expression | None:
    text = table.text(key)
    return None if text is None else _expression(table, scope, text, wanted, key)


def _expression(table: TomlTable, scope: Scope, text: str, wanted: Type, *steps: str | int) -> Expression | None:
    key = str(steps[0])
    try:
        checked = check(text, wanted, scope.operations)
    except ExpressionFaults as found:
        for fault in found.faults:
            table.note(f"{key} {fault}", *steps, character=fault.at)
        return None
    for doubt in checked.doubts:
        table.doubt(f"{key} {doubt}", *steps, character=doubt.at)
    for operation, at in checked.operations:
        if operation not in scope.operations:
            table.note(f"{key} {_never(operation, scope)}", *steps, character=at)
    try:
        reads = tuple(field_read(*field) for field in sorted(checked.fields))
        return Expression(key, checked, cel.compile(checked.text), reads)
    except (ValueError, RuntimeError) as error:  # our grammar accepts it, and the engine's does not
        table.note(f"{key} cannot be compiled: {' '.join(str(error).split())[:300]}", *steps, character=0)
        return None


def _never(operation: str, scope: Scope) -> str:
    """Return the mistake that `request.operation` is compared with what it never is."""
    text = f"compares request.operation with {operation!r}, "
    if operation in OPERATIONS:
        return f"{text}which the rule never judges; it judges {', '.join(sorted(scope.operations))}"
    if operation in GROUPS:
        return f"{text}which stands for several operations: name {' or '.join(GROUPS[operation])}"
    near = get_close_matches(operation, OPERATIONS, 1, 0.6)
    return f"{text}which does not exist; " + (
        f"did you mean {near[0]}?" if near else f"known are {', '.join(OPERATIONS)}"
    )


def _check_presence(table: TomlTable, scope: Scope, expressions: Sequence[Expression]) -> None:
    """Note an expression that reads a variable which is null for an operation of the rule, because
    the rule would deny every such request.
    """
    compared = {variable for expression in expressions for variable in expression.checked.compared_with_null}
    for variable, absent in ABSENT.items():
        reader = next(
            (e for e in expressions if any(read == variable and field for read, field in e.checked.fields)), None
        )
        never = sorted(scope.operations & absent)
        if reader is not None and never and variable not in compared:
            table.note(
                f"{reader.key} reads {variable}, which is null for {' and '.join(never)}: "
                f"narrow operations, or compare {variable} with null",
                reader.key,
            )
    _check_names(table, scope, expressions)
    if scope.operations != {"delete"} and any(CREATED in expression.checked.fields for expression in expressions):
        table.note("request.created is there for delete only: narrow operations")


def _check_names(table: TomlTable, scope: Scope, expressions: Sequence[Expression]) -> None:
    """Note an expression that reads the name of a topic or of another resource, if every operation
    of the rule is about the other.
    """
    judged = ", ".join(sorted(scope.operations))
    for reader in expressions:
        fields = {field for variable, field in reader.checked.fields if variable == "request"}
        if "topic" in fields and scope.operations and scope.operations <= ADMIN:
            table.note(f"{reader.key} reads request.topic, which is null for {judged}: read request.name", reader.key)
        if fields & {"kind", "name"} and not scope.operations & ADMIN:
            table.note(f"{reader.key} reads request.kind or request.name, which are null for {judged}", reader.key)


def _judge(
    scope: Scope, applies: Sequence[Expression], condition: Expression | None, message: Expression | None
) -> Judge:
    default = scope.message or f"The rule {scope.name} is not met."

    def judge(facts: Facts) -> str | None:
        if condition is None or not all(expression.holds(facts) for expression in applies) or condition.holds(facts):
            return None
        return default if message is None else _message(message, facts) or default

    return judge


def _message(expression: Expression, facts: Facts) -> str | None:
    try:
        message = expression.value(facts)
    except Exception:  # noqa: BLE001 - the request is refused in any case, with another message
        return None
    return message.strip() if isinstance(message, str) else None
