"""From configuration to policy; every mistake is one sentence that says what to do."""

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from minicontroller.policies import PolicyViolation, TopicManagementPolicy
from minicontroller.policies.legacy import LegacyPolicies
from minicontroller.policies.load_errors import PolicyLoadError
from minicontroller.policies.loading import ALTER_KEY, CREATE_KEY, POLICY_KEY, build_policy, without_secrets
from tests.policies.asking import alter, cluster, create

Write = Callable[[str, str], Path]

REFUSING = """
    from minicontroller.policies import PolicyViolation, TopicManagementPolicy

    class Refusing(TopicManagementPolicy):
        def validate_create_topic(self, request, cluster):
            raise PolicyViolation(f"not {request.topic}")
"""


@pytest.fixture(name="write")
def _write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files into a folder of their own, which is the working directory; what they import is
    forgotten afterwards.
    """

    def write(name: str, source: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))
        return path

    monkeypatch.chdir(tmp_path)
    path_before, modules_before = list(sys.path), set(sys.modules)
    yield write
    sys.path[:] = path_before
    for name in set(sys.modules) - modules_before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def failure(key: str, spec: str) -> str:
    """The sentence with which this configuration is refused."""
    with pytest.raises(PolicyLoadError) as refused:
        build_policy({key: spec})
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert sentence.startswith(key)
    return sentence


def test_no_policy() -> None:
    """A configuration that names no policy has none."""
    assert build_policy({"broker.id": "1"}) is None


@pytest.mark.parametrize("spec", ["policy.py:Refusing", "./policy.py:Refusing", "  policy.py:Refusing "])
def test_a_file_relative_to_the_working_directory(write: Write, spec: str) -> None:
    """A policy is named by its file and class (K201-1a)."""
    write("policy.py", REFUSING)
    policy = build_policy({POLICY_KEY: spec})
    assert policy is not None
    with pytest.raises(PolicyViolation, match="not orders"):
        policy.validate_create_topic(create("orders"), cluster())


def test_an_absolute_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absolute path means the same from everywhere."""
    path = write("policy.py", REFUSING)
    monkeypatch.chdir("/")
    assert type(build_policy({POLICY_KEY: f"{path}:Refusing"})).__name__ == "Refusing"


def test_a_module(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that is installed is named by its module and class (K201-1a)."""
    write("site/acme_policies/topics.py", REFUSING)
    monkeypatch.syspath_prepend("site")
    assert type(build_policy({POLICY_KEY: "acme_policies.topics:Refusing"})).__module__ == "acme_policies.topics"


def test_imports_of_files_beside_it(write: Write) -> None:
    """A policy's file may import the files beside it, when it is loaded and later."""
    write("rules/limits_beside.py", "MOST = 5")
    write("rules/words_beside.py", "TEXT = 'at most'")
    source = """
        from limits_beside import MOST
        from minicontroller.policies import PolicyViolation, TopicManagementPolicy

        class Limited(TopicManagementPolicy):
            def validate_create_topic(self, request, cluster):
                from words_beside import TEXT
                raise PolicyViolation(f"{TEXT} {MOST}")
    """
    write("rules/policy.py", source)
    policy = build_policy({POLICY_KEY: "rules/policy.py:Limited"})
    assert policy is not None
    with pytest.raises(PolicyViolation, match="at most 5"):
        policy.validate_create_topic(create(), cluster())


def test_a_file_hides_no_module_of_its_name(write: Write) -> None:
    """Neither a policy called json.py nor one beside it takes the place of what others import."""
    import json

    write("json.py", REFUSING)
    assert build_policy({POLICY_KEY: "json.py:Refusing"}) is not None
    assert sys.modules["json"] is json
    sys.modules.pop("colorsys", None)
    write("colorsys.py", "raise OSError('taken for the library')")
    import colorsys

    assert colorsys.rgb_to_hsv(0, 0, 0) == (0, 0, 0)


def test_a_file_is_run_as_it_stands(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed file is a changed policy at once, and nothing is written beside it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # whatever pytest was called with: bytecode may be written
    for number in "12":  # the same size, within the same second
        write("policy.py", REFUSING.replace("not {", f"{number} not {{"))
        policy = build_policy({POLICY_KEY: "policy.py:Refusing"})
        assert policy is not None
        with pytest.raises(PolicyViolation, match=f"{number} not"):
            policy.validate_create_topic(create(), cluster())
    assert [path.name for path in tmp_path.iterdir()] == ["policy.py"]


def test_dataclasses_and_type_hints_work_in_a_file(write: Write) -> None:
    """A file is a full module: what looks itself up in sys.modules finds itself."""
    source = """
        from __future__ import annotations
        import dataclasses, typing
        from minicontroller.policies import TopicManagementPolicy

        @dataclasses.dataclass
        class Limit:
            most: typing.ClassVar[int] = 3
            least: int = 1

        class Typed(TopicManagementPolicy):
            limits = typing.get_type_hints(Limit)
    """
    write("policy.py", source)
    assert vars(type(build_policy({POLICY_KEY: "policy.py:Typed"})))["limits"]["least"] is int


# ------------------ configuration

CONFIGURED = """
    from minicontroller.policies import TopicManagementPolicy

    class Configured(TopicManagementPolicy):
        def configure(self, configs):
            self.configs = configs
"""


def test_configure_gets_the_configuration_without_secrets(write: Write) -> None:
    """A policy is configured once with the node's configuration as written, and learns no password
    from it (K201-1a).
    """
    write("policy.py", CONFIGURED)
    plain = {POLICY_KEY: "policy.py:Configured", "broker.id": "1", "ssl.keystore.location": "/etc/keys"}
    secret = {
        "ssl.keystore.password": "x",
        "ssl.keystore.key": "x",
        "listener.name.internal.plain.sasl.jaas.config": "x",
        "password.encoder.old.secret": "x",
        "delegation.token.secret.key": "x",
        "acme.api.entry": "x",
    }
    policy = build_policy({**plain, **secret}, secrets={"acme.api.entry"})
    assert vars(policy)["configs"] == plain
    with pytest.raises(TypeError):
        vars(policy)["configs"]["broker.id"] = "2"


def test_secrets_are_known_by_name_or_named() -> None:
    """What is a secret is said by the key's own name, or by whoever declares the keys."""
    assert without_secrets({"a": "1", "SSL_KEY_PASSWORD": "2", "b": "3"}, ("b",)) == {"a": "1"}


# ------------------ mistakes


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("", "takes module:Class or path/to/file.py:Class."),
        ("Policy", "takes module:Class or path/to/file.py:Class."),
        ("com.acme.Policy", "did you mean com.acme:Policy?"),
        ("config/policy.py", "which class of config/policy.py is the policy?"),
        ("policy.py:", "takes module:Class or path/to/file.py:Class."),
        (":Policy", "takes module:Class or path/to/file.py:Class."),
        ("acme:not a name", "takes module:Class or path/to/file.py:Class."),
    ],
)
def test_ill_formed(spec: str, hint: str) -> None:
    """What is neither module:Class nor file:Class is told what to write."""
    sentence = failure(POLICY_KEY, spec)
    assert repr(spec) in sentence
    assert sentence.endswith(hint)


def test_missing_file(write: Write, tmp_path: Path) -> None:
    """A missing file is named in full, so that a wrong working directory shows, with its nearest
    neighbour.
    """
    assert failure(POLICY_KEY, "rules/policy.py:A").endswith(
        f"there is no file {tmp_path}/rules/policy.py; name a Python file that is there."
    )
    write("rules/policies.py", "")
    assert failure(POLICY_KEY, "rules/policy.py:A").endswith("; did you mean rules/policies.py?")


def test_missing_module(write: Write) -> None:
    """A missing module is told from a module that fails to import another; a file of that name is
    offered.
    """
    assert "there is no module acme_absent.topics; install it" in failure(POLICY_KEY, "acme_absent.topics:A")
    write("acme_absent/topics.py", "")
    assert failure(POLICY_KEY, "acme_absent.topics:A").endswith("; did you mean acme_absent/topics.py?")


def test_a_module_that_imports_what_is_missing(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the policy needs and does not find is named with the line that needs it."""
    write("site/acme_needy.py", "\nimport acme_absent\n")
    monkeypatch.syspath_prepend("site")
    assert failure(POLICY_KEY, "acme_needy:A").endswith(
        "the module acme_needy cannot be imported: ModuleNotFoundError: No module named 'acme_absent' (site/acme_needy.py:2)"
    )


def test_missing_class(write: Write) -> None:
    """A missing class is answered with the nearest one, or with the only one that the
    file defines.
    """
    write("policy.py", REFUSING)
    assert failure(POLICY_KEY, "policy.py:Refusin").endswith("policy.py has no class Refusin; did you mean Refusing?")
    assert failure(POLICY_KEY, "policy.py:Zzz").endswith("; did you mean Refusing?")
    write("empty.py", "Refusing = 5")
    assert "empty.py has no class Refusing and no other class" in failure(POLICY_KEY, "empty.py:Refusing")


def test_syntax_error(write: Write) -> None:
    """A file that is no Python is named with the line, and so is its neighbour."""
    write("policy.py", "class A:\n    def f(self:\n        pass\n")
    assert failure(POLICY_KEY, "policy.py:A").endswith(
        "policy.py cannot be loaded: SyntaxError: '(' was never closed (policy.py:2)"
    )
    write("broken_beside.py", "\n\nif:\n")
    write("policy.py", "import broken_beside\n")
    assert failure(POLICY_KEY, "policy.py:A").endswith("SyntaxError: invalid syntax (broken_beside.py:3)")


def test_not_utf8(write: Write) -> None:
    """A file in another encoding is a sentence too."""
    write("policy.py", "").write_bytes(b"NAME = 'caf\xe9'\n")
    assert "policy.py cannot be loaded: SyntaxError" in failure(POLICY_KEY, "policy.py:A")


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("raise ValueError('no\\nluck')", "ValueError: no luck"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise BaseException", "BaseException"),
        (
            "import json; json.loads('{')",
            "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
    ],
)
def test_a_file_that_raises(write: Write, statement: str, what: str) -> None:
    """Whatever a policy raises when it is loaded is told with the line in its own file, and ends
    nothing.
    """
    write("policy.py", f"\n{statement}\n")
    before = set(sys.modules)
    assert failure(POLICY_KEY, "policy.py:A").endswith(f"policy.py cannot be loaded: {what} (policy.py:2)")
    left = set(sys.modules) - before
    assert not [name for name in left if name.startswith("policy_policy_")]  # nothing half loaded stays behind


def test_not_a_policy(write: Write) -> None:
    """A class of another kind is not a policy, even if it has the methods; Kafka's older shape is
    told where it belongs.
    """
    write("policy.py", "class A:\n    def validate_create_topic(self, request, cluster): ...\n")
    assert failure(POLICY_KEY, "policy.py:A").endswith(
        "A must be derived from minicontroller.policies.TopicManagementPolicy."
    )
    write("policy.py", "class A:\n    def validate(self, request_metadata): ...\n")
    assert CREATE_KEY in failure(POLICY_KEY, "policy.py:A")


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("def __init__(self, limit): ...", "cannot be created (it is called without arguments): TypeError: "),
        ("def __init__(self):\n        raise OSError('no licence')", "OSError: no licence (policy.py:4)"),
        (
            "def configure(self, configs):\n        configs['absent.key']",
            "raised an exception in configure: KeyError: 'absent.key' (policy.py:4)",
        ),
        ("def configure(self, configs):\n        configs['a'] = 'b'", "raised an exception in configure: TypeError: "),
        (
            "def validate_create_topic(self, request): ...",
            "A.validate_create_topic cannot be called as validate_create_topic(request, cluster): too many",
        ),
        ("def close(self, now): ...", "A.close cannot be called as close(): missing a required argument: 'now'."),
        ("async def validate_create_topic(self, request, cluster): ...", "must be a plain function, and neither"),
        (
            "def validate_delete_topic(self, request, cluster):\n        yield",
            "must be a plain function, and neither",
        ),
        (
            "def validate_create_topics(self, request, cluster): ...",
            "never called; did you mean validate_create_topic?",
        ),
        ("def validateDeleteTopic(self, request, cluster): ...", "never called; did you mean validate_delete_topic?"),
        (
            "def validate_alter_broker_config(self, request, cluster): ...",
            "never called; did you mean validate_alter_broker_configs?",
        ),
        (
            "def validateAlterLogger(self, request, cluster): ...",
            "never called; did you mean validate_alter_loggers?",
        ),
        ("def validate_alter_loggers(self): ...", "A.validate_alter_loggers cannot be called as"),
        ("def validateAdmin(self, request, cluster): ...", "never called; did you mean validate_admin?"),
    ],
)
def test_a_class_that_cannot_be_used(write: Write, body: str, what: str) -> None:
    """What would fail at the first request, or let everything pass in silence, fails at start
    (K201-11).
    """
    source = f"from minicontroller.policies import TopicManagementPolicy\nclass A(TopicManagementPolicy):\n    {body}\n"
    write("policy.py", source)
    sentence = failure(POLICY_KEY, "policy.py:A")
    assert what in sentence
    assert ": A" in sentence


@pytest.mark.parametrize(
    "body",
    [
        "def validate_create_topic(self, request, cluster, *, strict=True): ...",
        "def validate_create_topic(self, *arguments): ...",
        "@staticmethod\n    def validate_create_topic(request, cluster): ...",
        "@classmethod\n    def validate_create_topic(cls, request, cluster): ...",
        "validate_create_topic = lambda self, request, cluster: None",
        "def validate_topic_name(self, name): ...",
        "def validate_create_topic(self, request, cluster): ...\n    def validate_create_topic_(self): ...",
    ],
)
def test_a_class_that_can_be_used(write: Write, body: str) -> None:
    """No way to write a method that works is refused, and neither are helpers with names of their
    own.
    """
    write(
        "policy.py",
        f"from minicontroller.policies import TopicManagementPolicy\nclass A(TopicManagementPolicy):\n    {body}\n",
    )
    assert isinstance(build_policy({POLICY_KEY: "policy.py:A"}), TopicManagementPolicy)


def test_ctrl_c_ends_a_load(write: Write) -> None:
    """The operator's own interruption is not taken for a fault of the policy."""
    write("policy.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        build_policy({POLICY_KEY: "policy.py:A"})


# ------------------ older policies

OLDER = """
    from minicontroller.policies import PolicyViolation

    class Create:
        def configure(self, configs):
            self.configs = configs
        def validate(self, request_metadata):
            raise PolicyViolation(f"no partitions: {request_metadata.num_partitions}")

    class Alter:
        def validate(self, request_metadata):
            raise PolicyViolation(f"no configs: {sorted(request_metadata.configs)}")
"""


def test_older_policies_become_one(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    """Both older keys still work, alone and together, with one warning for each (K201-9)."""
    write("older.py", OLDER)
    with caplog.at_level(logging.WARNING, "minicontroller.policy"):
        policy = build_policy({CREATE_KEY: "older.py:Create", ALTER_KEY: "older.py:Alter", "ssl.key.password": "x"})
    assert isinstance(policy, LegacyPolicies)
    with pytest.raises(PolicyViolation, match="no partitions: 3"):
        policy.validate_create_topic(create(), cluster())
    with pytest.raises(PolicyViolation, match=r"no configs: \['retention.ms'\]"):
        policy.validate_alter_topic(alter(operations={"retention.ms": None}), cluster())
    assert set(vars(policy.create)["configs"]) == {CREATE_KEY, ALTER_KEY}
    assert [(record.levelname, record.args) for record in caplog.records] == [
        ("WARNING", (CREATE_KEY, POLICY_KEY)),
        ("WARNING", (ALTER_KEY, POLICY_KEY)),
    ]
    alone = build_policy({ALTER_KEY: "older.py:Alter"})
    assert alone is not None
    alone.validate_create_topic(create(), cluster())


@pytest.mark.parametrize("older", [(CREATE_KEY,), (ALTER_KEY,), (CREATE_KEY, ALTER_KEY)])
def test_both_kinds_together_are_refused(older: tuple[str, ...]) -> None:
    """Old and new beside each other would be two policies, and the configuration is refused
    (K201-10).
    """
    with pytest.raises(PolicyLoadError, match="cannot be combined with") as refused:
        build_policy({POLICY_KEY: "policy.py:A", **dict.fromkeys(older, "older.py:Create")})
    assert all(key in str(refused.value) for key in (POLICY_KEY, *older))


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("class A: ...", "A must have a method validate(self, request_metadata)."),
        ("class A:\n    async def validate(self, request_metadata): ...", "must be a plain function"),
        (
            "class A:\n    def validate(self): ...",
            "A.validate cannot be called as validate(request_metadata): too many",
        ),
        ("class A:\n    validate = None", "A must have a method validate"),
        (
            "class A:\n    def validate(self, r): ...\n    def configure(self, c):\n        1 / 0",
            "ZeroDivisionError: division by zero (older.py:4)",
        ),
        ("from minicontroller.policies import TopicManagementPolicy as A", f"name it in {POLICY_KEY} instead"),
    ],
)
def test_an_older_policy_that_cannot_be_used(write: Write, source: str, what: str) -> None:
    """The older kinds are looked at as closely."""
    write("older.py", source)
    assert what in failure(CREATE_KEY, "older.py:A")
