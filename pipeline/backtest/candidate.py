"""The candidate: the policy of a back-test, from the command line to the process that asks it, here
or on a worker.

It is loaded with the controller's loader from the same configuration keys. It is loaded here first,
so that its mistakes are reported before the replay. Workers are sent its files, and no secret of
the configuration.
"""

import io
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path

import msgspec

from ...policies.interface import TopicManagementPolicy
from ...policies.judging import PolicyJudge, call_policy
from ...policies.load_errors import PolicyLoadError
from ...policies.loading import (
    ALTER_KEY,
    CREATE_KEY,
    POLICY_KEY,
    build_policy,
    is_rule_file,
    names_class,
    without_secrets,
)
from ...policies.rules.mistakes import RuleFileError, RuleSource
from ...policies.rules.ruleset import load_rules
from ...process.settings.properties import PropertiesError, parse_properties
from .determinism_check import nondeterministic_calls
from .policy_packaging import (
    FileContents,
    absolute_spec,
    folder_of,
    imports_forgotten,
    is_file,
    is_installed,
    packaged,
    unpackaged,
)
from .sandbox import Sandbox, audit_events_to, opened

RULES_KEY = "policy.rules.files"
TIMEOUT_KEY = "policy.timeout.ms"
DEFAULT_TIMEOUT_MS = 5_000
MEMORY_BYTES = 4 << 30
"""How much memory a process may use from when a policy is loaded: twice what a node gives it, since
the history lies in the same process.
"""
CLASS_KEYS = (POLICY_KEY, CREATE_KEY, ALTER_KEY)


class CandidateError(Exception):
    """The candidate cannot be loaded; the message says why."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate as it is sent to workers."""

    name: str
    """The name of the policy's class, of its rule files, or both."""
    policy_hash: str
    configs: dict[str, str]
    """The policy's configuration without secrets; a class that is named by its file has the file's
    absolute path.
    """
    timeout_ms: int
    rules: tuple[RuleSource, ...] = ()
    folders: dict[str, FileContents] = {}
    """The files that are sent along with the policy, by the folders that they come from."""
    searched: tuple[str, ...] = ()
    """The folders in which the policy's modules are looked for."""

    @contextmanager
    def sandboxed(self) -> Iterator[Sandbox]:
        """Load the policy again, to be asked within the block. Raises PolicyLoadError,
        RuleFileError.
        """
        rules = load_rules(self.rules) if self.rules else None
        with unpackaged(self.folders, self.searched) as places:
            configs = dict(self.configs)
            for key in configs.keys() & CLASS_KEYS:
                folder, _, name = configs[key].rpartition("/")
                if folder in places:
                    configs[key] = f"{places[folder]}/{name}"
            with limited_memory() if names_class(configs) else nullcontext():
                with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    policy = build_policy(configs)
                names = {str(place): folder for folder, place in places.items()}
                sandbox = Sandbox(PolicyJudge(policy, rules), timeout_ms=self.timeout_ms, names=names)
                with sandbox.running():
                    yield sandbox
                    call_policy((policy or TopicManagementPolicy()).close)


class LoadedCandidate(msgspec.Struct, frozen=True):
    """A candidate, and what loading it has shown."""

    candidate: Candidate
    nondeterministic_calls: tuple[str, ...]
    """The places in its code that use names whose results may differ between runs."""
    reads: tuple[str, ...]
    """Files that are not sent along, but were read while the policy was loaded: they have to be on
    every machine.
    """
    rules: tuple[tuple[str, str], ...] = ()
    """The names and actions of the candidate's rules."""

    @property
    def names(self) -> list[str]:
        """The names under which the log has what the candidate refuses: those of its rules, and
        that of the policy if it has Python code.
        """
        names = [name for name, _ in self.rules]
        return [*names, self.candidate.name] if names_class(self.candidate.configs) else names


def read_candidate(policy: str, settings: Sequence[str] = ()) -> LoadedCandidate:
    """Read the argument POLICY and the options `--set KEY=VALUE`. Raises CandidateError."""
    visible = dict(without_secrets(named(policy, settings)))
    timeout_ms = _timeout(visible)
    rules = _rules(visible)
    specs = {
        key: absolute_spec(visible[key]) for key in CLASS_KEYS if key in visible and not is_rule_file(visible[key])
    }
    if not rules and not specs:
        raise CandidateError(f"{policy} names no policy: {', '.join((*CLASS_KEYS, RULES_KEY))} would.")
    read: set[str | None] = set()
    folders: dict[str, FileContents] = {}
    searched: list[str] = []
    try:
        with (
            audit_events_to(lambda event, arguments: read.add(opened(event, arguments))),
            imports_forgotten(folders) as known,
            redirect_stdout(sys.stderr),
        ):
            loaded = build_policy(visible)
            ruleset = load_rules(rules) if rules else None
            judge = PolicyJudge(loaded, ruleset)
            new = sys.modules.keys() - known
            for spec in specs.values():
                if (folder := folder_of(spec)) is not None:
                    folders.setdefault(folder, {}).update(packaged(spec, folder, filter(None, read), new))
                    searched += [] if is_file(spec) else [folder]
            call_policy((loaded or TopicManagementPolicy()).close)
    except PolicyLoadError as error:
        raise CandidateError(str(error)) from None
    except RuleFileError as error:
        raise CandidateError(f"The rules cannot be used:\n{error}") from None
    candidate = Candidate(
        name=judge.name, policy_hash=judge.policy_hash, configs={**visible, **specs}, timeout_ms=timeout_ms, rules=rules,
        folders=folders, searched=tuple(searched),
    )  # fmt: skip
    rule_names = () if ruleset is None else tuple((each.name, each.action.value) for each in ruleset.rules)
    return LoadedCandidate(
        candidate, nondeterministic_calls(folders), _elsewhere(filter(None, read), folders), rule_names
    )


# ------------------------------------------------------------------ what is named


def named(policy: str, settings: Sequence[str]) -> dict[str, str]:
    """Return the configuration that is asked for. Raises CandidateError."""
    return {**_named(policy), **dict(map(_setting, settings))}


@contextmanager
def limited_memory() -> Iterator[None]:
    """Let the process use MEMORY_BYTES more within the block, on systems that know such a limit: a
    policy that wants more gets MemoryError, as at a node, and does not take the machine's.
    """
    try:
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    except OSError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = used + MEMORY_BYTES
    if soft == resource.RLIM_INFINITY or soft > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _named(policy: str) -> dict[str, str]:
    if policy.endswith(".properties"):
        return _properties(Path(policy))
    parts = _listed(policy)
    files = [part for part in parts if is_rule_file(part)]
    classes = [part for part in parts if not is_rule_file(part)]
    if len(classes) > 1:
        raise CandidateError(
            f"{' and '.join(classes)}: there is one policy in Python, beside any number of rule files. Both of Kafka's older kinds "
            f"can be named by --set {CREATE_KEY}=... and --set {ALTER_KEY}=..."
        )
    named = dict.fromkeys([POLICY_KEY], classes[0]) if classes else {}
    return named | ({RULES_KEY: ",".join(files)} if files else {})


def _properties(file: Path) -> dict[str, str]:
    try:
        found = parse_properties(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)
        raise CandidateError(f"{file} cannot be read: {why}.") from None
    except PropertiesError as error:
        raise CandidateError(str(error)) from None
    return {key: entry.value for key, entry in found.entries.items()}


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise CandidateError(f"--set {text}: write it as KEY=VALUE.")
    return key.strip(), value.strip()


def _timeout(configs: Mapping[str, str]) -> int:
    text = configs.get(TIMEOUT_KEY, str(DEFAULT_TIMEOUT_MS)).strip()
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise CandidateError(f"{TIMEOUT_KEY} is {text!r}, but must be a number of milliseconds, at least 1.")
    return int(text)


def _rules(configs: Mapping[str, str]) -> tuple[RuleSource, ...]:
    """Return the rule files as the controller reads them: a file that is named twice is one."""
    policy = configs.get(POLICY_KEY, "").strip()
    named = [policy] if is_rule_file(policy) else []
    sources = []
    for name in dict.fromkeys([*named, *_listed(configs.get(RULES_KEY, ""))]):
        try:
            sources.append(RuleSource(name, Path(name).read_bytes()))
        except OSError as error:
            raise CandidateError(f"The rule file {name} cannot be read: {error.strerror or error}.") from None
    return tuple(sources)


# ------------------------------------------------------------------ what it needs


def _elsewhere(read: Iterable[str], folders: Mapping[str, FileContents]) -> tuple[str, ...]:
    sent = {Path(folder, name) for folder, files in folders.items() for name in files}
    files = {path: Path(path).resolve() for path in read}
    return tuple(sorted(path for path, file in files.items() if file not in sent and not is_installed(file)))
