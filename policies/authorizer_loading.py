"""The authorizer of a node, from `authorizer.class.name`.

Rule: everything that is wrong with an authorizer is found before the node listens, and reported in
one sentence that names the key and what to do.
"""

import inspect
from collections.abc import Collection, Mapping

from .authorizer import Authorizer
from .class_lookup import find_class
from .load_errors import PolicyLoadError, as_load_error
from .loading import without_secrets

AUTHORIZER_KEY = "authorizer.class.name"
KAFKAS_AUTHORIZERS = frozenset(
    {
        "kafka.security.authorizer.AclAuthorizer",
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    }
)
"""Kafka's names of the authorizers that decide by ACLs. Both stand for this program's own."""

REMOVED_AUTHORIZER = "kafka.security.auth.SimpleAclAuthorizer"
_ARGUMENTS = {"authorize": ("requester", "actions"), "configure": ("configs",), "close": ()}


def build_authorizer(spec: str, configs: Mapping[str, str], *, secrets: Collection[str] = ()) -> Authorizer | None:
    """Return the authorizer that the key's value names, configured; None for Kafka's own. Raises
    PolicyLoadError.

    `configs` is the node's configuration as written. `secrets` are keys that the authorizer must
    not see, besides those whose names say that they are secret.
    """
    kind = authorizer_class(spec)
    if kind is None:
        return None
    with as_load_error(f"{AUTHORIZER_KEY}: {kind.__name__} cannot be created (it is called without arguments)"):
        authorizer = kind()
    with as_load_error(f"{AUTHORIZER_KEY}: {kind.__name__} raised an exception in configure"):
        authorizer.configure(without_secrets(configs, secrets))
    return authorizer


def authorizer_class(spec: str) -> type[Authorizer] | None:
    """Return the class that the key's value names; None for Kafka's own. Raises PolicyLoadError if
    it cannot be an authorizer.
    """
    if spec in KAFKAS_AUTHORIZERS:
        return None
    if spec == REMOVED_AUTHORIZER:
        raise PolicyLoadError(
            f"{AUTHORIZER_KEY}: Kafka 3.0 removed {spec}; name kafka.security.authorizer.AclAuthorizer, which reads the same ACLs."
        )
    kind = find_class(AUTHORIZER_KEY, spec)
    if not issubclass(kind, Authorizer):
        text = "must be derived from minicontroller.policies.Authorizer"
        raise PolicyLoadError(f"{AUTHORIZER_KEY}: {kind.__name__} {text}.")
    if kind.authorize is Authorizer.authorize:
        raise PolicyLoadError(f"{AUTHORIZER_KEY}: {kind.__name__} has no method authorize(self, requester, actions).")
    for method, arguments in _ARGUMENTS.items():
        _check_call(kind, method, arguments)
    return kind


def _check_call(kind: type[Authorizer], name: str, arguments: tuple[str, ...]) -> None:
    method = getattr(kind, name)
    if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise PolicyLoadError(
            f"{AUTHORIZER_KEY}: {kind.__name__}.{name} must be a plain function, and neither a coroutine nor a generator."
        )
    try:
        inspect.signature(method).bind("self", *arguments)
    except TypeError as error:
        call = f"{name}({', '.join(arguments)})"
        raise PolicyLoadError(
            f"{AUTHORIZER_KEY}: {kind.__name__}.{name} cannot be called as {call}: {error}."
        ) from error
