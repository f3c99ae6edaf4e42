"""The policy of a node, from three configuration keys.

Rule: everything that is wrong with a policy is found here, before the node listens, and reported in
one sentence that names the key and what to do. That includes mistakes that would silently allow
everything: a method whose name is misspelt, a method that does not take the arguments that it is
called with, a coroutine that nobody would await.
"""

import inspect
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .class_lookup import find_class
from .interface import TopicManagementPolicy
from .legacy import LegacyPolicies
from .load_errors import PolicyLoadError, as_load_error

POLICY_KEY = "topic.management.policy.class.name"
CREATE_KEY = "create.topic.policy.class.name"
ALTER_KEY = "alter.config.policy.class.name"
RESULTS_KEY = "alter.config.policy.kraft.compatibility.enable"
"""Whether an older policy for changed configs sees the values that result (Kafka 3.9.2)."""

SECRET_WORDS = ("password", "secret", "jaas", "credential", "token", "keystore.key")
"""Words that the names of Kafka's secret keys contain, also behind the prefix of a listener
(`listener.name.internal.plain.sasl.jaas.config`).
"""

JUDGEMENTS = tuple(name for name in vars(TopicManagementPolicy) if name.startswith("validate_"))
ARGUMENTS = {
    **dict.fromkeys(JUDGEMENTS, ("request", "cluster")),
    "validate": ("request_metadata",),
    "configure": ("configs",),
    "close": (),
}
"""The arguments of each method of a policy, of the new and of the older kinds."""
MISSPELT = 0.9
"""How similar a method's name must be to one of the interface to count as misspelt: a letter more
or less, or Java's spelling.
"""

logger = logging.getLogger("minicontroller.policy")


def build_policy(configs: Mapping[str, str], *, secrets: Collection[str] = ()) -> TopicManagementPolicy | None:
    """Return the policy that the configuration names, configured; None if it names none, or only
    rule files. Raises PolicyLoadError.

    `configs` is the node's configuration as written, which the policy is configured with. `secrets`
    are keys that it must not see, besides those whose names say that they are secret.
    """
    old = [key for key in (CREATE_KEY, ALTER_KEY) if key in configs]
    visible = without_secrets(configs, secrets)
    if POLICY_KEY not in configs:
        return _legacy(old, visible) if old else None
    if old:
        raise PolicyLoadError(
            f"{' and '.join(old)} cannot be combined with {POLICY_KEY}: keep either, "
            "or move what the older policy judges into the newer one."
        )
    if is_rule_file(configs[POLICY_KEY]):
        return None
    policy = _instance(POLICY_KEY, configs[POLICY_KEY].strip())
    _configure(POLICY_KEY, policy, visible)
    assert isinstance(policy, TopicManagementPolicy)
    return policy


def names_class(configs: Mapping[str, str]) -> bool:
    """Whether the configuration names a policy in Python."""
    specs = [configs[key] for key in (POLICY_KEY, CREATE_KEY, ALTER_KEY) if key in configs]
    return not all(map(is_rule_file, specs))


def is_rule_file(spec: str) -> bool:
    """Whether a policy's value names a file of rules rather than a class."""
    return spec.strip().endswith(".toml")


def policy_hash(policy: TopicManagementPolicy) -> str:
    """Return the SHA-256 of the files that define the policy, in hexadecimal; empty for a policy
    that judges nothing.
    """
    if type(policy) is TopicManagementPolicy:
        return ""
    parts = (policy.create, policy.alter) if isinstance(policy, LegacyPolicies) else (policy,)
    digest = sha256()
    for kind in (type(part) for part in parts if part is not None):
        digest.update(f"{kind.__qualname__}\n".encode())
        with suppress(OSError, TypeError):  # a class that was built in memory has only its name
            digest.update(Path(inspect.getfile(kind)).read_bytes())
    return digest.hexdigest()


def without_secrets(configs: Mapping[str, str], secrets: Collection[str] = ()) -> Mapping[str, str]:
    """Return the node's configuration without secrets, as a policy may see it."""
    return MappingProxyType({key: value for key, value in configs.items() if key not in secrets and not is_secret(key)})


def is_secret(key: str) -> bool:
    """Whether a key's name says that its value is a secret."""
    return any(word in key.lower() for word in SECRET_WORDS)


def _legacy(keys: list[str], configs: Mapping[str, str]) -> LegacyPolicies:
    policies: dict[str, Any] = {}
    for key in keys:
        logger.warning(
            "%s is deprecated: derive from TopicManagementPolicy instead, and name it in %s.", key, POLICY_KEY
        )
        policies[key] = _instance(key, configs[key].strip())
        _configure(key, policies[key], configs)
    shows_results = configs.get(RESULTS_KEY, "").strip().lower() == "true"
    return LegacyPolicies(policies.get(CREATE_KEY), policies.get(ALTER_KEY), shows_results=shows_results)


def _instance(key: str, spec: str) -> object:
    kind = find_class(key, spec)
    if key == POLICY_KEY:
        _check_new(key, kind)
    else:
        _check_old(key, kind)
    for method, arguments in ARGUMENTS.items():
        _check_call(key, kind, method, arguments)
    with as_load_error(f"{key}: {kind.__name__} cannot be created (it is called without arguments)"):
        instance: object = kind()
    return instance


def _configure(key: str, policy: Any, configs: Mapping[str, str]) -> None:
    if hasattr(policy, "configure"):
        with as_load_error(f"{key}: {type(policy).__name__} raised an exception in configure"):
            policy.configure(configs)


def _check_new(key: str, kind: type) -> None:
    if not issubclass(kind, TopicManagementPolicy):
        older = (
            f" (a class with only validate belongs to {CREATE_KEY} or {ALTER_KEY})" if hasattr(kind, "validate") else ""
        )
        raise PolicyLoadError(
            f"{key}: {kind.__name__} must be derived from minicontroller.policies.TopicManagementPolicy{older}."
        )
    missing = [name for name in JUDGEMENTS if getattr(kind, name) is getattr(TopicManagementPolicy, name)]
    for name in missing:
        for other in dir(kind):
            if other not in JUDGEMENTS and other.startswith("validate") and _likeness(name, other) >= MISSPELT:
                raise PolicyLoadError(f"{key}: {kind.__name__}.{other} is never called; did you mean {name}?")


def _check_old(key: str, kind: type) -> None:
    if issubclass(kind, TopicManagementPolicy):
        raise PolicyLoadError(f"{key}: {kind.__name__} is a TopicManagementPolicy: name it in {POLICY_KEY} instead.")
    if not callable(getattr(kind, "validate", None)):
        raise PolicyLoadError(f"{key}: {kind.__name__} must have a method validate(self, request_metadata).")


def _check_call(key: str, kind: type, name: str, arguments: tuple[str, ...]) -> None:
    method = getattr(kind, name, None)
    if not inspect.isfunction(method):
        return  # it is absent, or only a call can show whether it fits
    if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise PolicyLoadError(
            f"{key}: {kind.__name__}.{name} must be a plain function, and neither a coroutine nor a generator."
        )
    static = isinstance(inspect.getattr_static(kind, name), staticmethod)
    try:
        inspect.signature(method).bind(*arguments if static else ("self", *arguments))
    except TypeError as error:
        call = f"{name}({', '.join(arguments)})"
        raise PolicyLoadError(f"{key}: {kind.__name__}.{name} cannot be called as {call}: {error}.") from error


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.replace("_", "").lower(), other.replace("_", "").lower()).ratio()
