"""POLICY, from the command line to whoever asks it: what it names, what travels with it, what is
wrong with it, and what in it looks unsteady.
"""

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minicontroller.pipeline.backtest.candidate import Candidate, CandidateError, LoadedCandidate, read_candidate
from minicontroller.pipeline.backtest.isolated_loading import load_isolated
from minicontroller.policies.judging import PolicyJudge
from minicontroller.policies.loading import build_policy
from minicontroller.policies.rules.ruleset import read_rule_files
from minicontroller.policies.verdict import Verdict
from tests.pipeline.backtest.asking import HEAD, at_most, in_python
from tests.policies.asking import cluster, create

ROOT = Path(__file__).parents[3]

POLICY = """
from pathlib import Path

import {neighbour}
from {package}.deep import reason


class Candidate(TopicManagementPolicy):
    def configure(self, configs):
        self.configs = dict(configs)
        self.data = Path(__file__).with_name("data.json").read_text()

    def validate_create_topic(self, request, cluster):
        from {package} import later

        raise PolicyViolation(f"{{reason()}} {{later.NAME}} {{{neighbour}.LIMIT}} {{self.data}} {{sorted(self.configs)}}")
"""


def ask(candidate: Candidate, topic: str = "t") -> Verdict:
    with candidate.sandboxed() as sandbox:
        return sandbox.ask(create(topic), cluster())


@pytest.fixture(name="folder")
def a_folder_with_a_policy(tmp_path: Path) -> Path:
    """It imports a neighbour, a package beside it, and reads a file."""
    (tmp_path / "candidate.py").write_text(HEAD + POLICY.format(neighbour="a_neighbour", package="a_package"))
    (tmp_path / "a_neighbour.py").write_text("from a_package.other import LIMIT\n")
    (tmp_path / "data.json").write_text('"data"')
    package = tmp_path / "a_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "deep.py").write_text("from . import other\n\ndef reason():\n    return other.REASON\n")
    (package / "other.py").write_text("REASON = 'deep'\nLIMIT = 4\n")
    (package / "later.py").write_text("NAME = 'later'\n")
    (tmp_path / "unrelated.py").write_text("raise AssertionError('nobody imports this')\n")
    (tmp_path / "unrelated.csv").write_text("much\n")
    return tmp_path


EXPECTED = """deep later 4 "data" ['topic.management.policy.class.name', 'topic.management.policy.config.k']"""


def test_what_a_policy_needs_travels_and_nothing_else(folder: Path) -> None:
    """Modules of its folder, those that it imports late too, and what it reads while it is loaded;
    and it judges where its folder is not.
    """
    found = read_candidate(
        f"{folder}/candidate.py:Candidate", ["topic.management.policy.config.k=v", "ssl.key.password=p"]
    )
    [sent] = found.candidate.folders.values()
    assert sorted(sent) == [
        "a_neighbour.py", "a_package/__init__.py", "a_package/deep.py", "a_package/later.py", "a_package/other.py", "candidate.py",
        "data.json",
    ]  # fmt: skip
    assert found.reads == ()
    shutil.rmtree(folder)
    verdict = ask(found.candidate)
    assert verdict.message == EXPECTED


def test_a_candidate_travels_as_bytes(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Another process, elsewhere, which never saw the folder, loads the same policy."""
    candidate = read_candidate(f"{folder}/candidate.py:Candidate", ["topic.management.policy.config.k=v"]).candidate
    (elsewhere := tmp_path_factory.mktemp("elsewhere")).joinpath("candidate").write_bytes(pickle.dumps(candidate))
    shutil.rmtree(folder)
    program = (
        "import pickle, pathlib\n"
        "from minicontroller.policies import CreateTopicRequest\n"
        "from minicontroller.policies.states import ClusterSnapshot, requested_state\n"
        "candidate = pickle.loads(pathlib.Path('candidate').read_bytes())\n"
        "request = CreateTopicRequest(topic='t', principal=None, requested_state=requested_state([[1]]))\n"
        "with candidate.sandboxed() as sandbox:\n"
        "    verdict = sandbox.ask(request, ClusterSnapshot())\n"
        "print(verdict.message)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], cwd=elsewhere, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == EXPECTED


def test_a_module_is_named_as_the_controller_takes_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class `module:Class` of a folder where Python looks travels as well."""
    monkeypatch.syspath_prepend(folder)
    found = read_candidate("candidate:Candidate", ["topic.management.policy.config.k=v"])
    monkeypatch.undo()
    shutil.rmtree(folder)
    assert ask(found.candidate).message == EXPECTED
    assert "candidate" not in sys.modules


def test_what_is_installed_does_not_travel() -> None:
    """A policy of an installed package is imported where it is asked."""
    found = read_candidate("minicontroller.cli.demo_policy:DemoPolicy")
    assert found.candidate.folders == {}
    assert ask(found.candidate, "x").decision is not None


def test_secrets_of_the_configuration_do_not_travel(tmp_path: Path) -> None:
    """Passwords and the like are left out before anything is made of it."""
    (tmp_path / "rules.toml").write_text("[[partitions]]\nmax = 1\n")
    (tmp_path / "server.properties").write_text(
        f"policy.rules.files={tmp_path}/rules.toml\nssl.keystore.password=hunter2\nlistener.name.x.plain.sasl.jaas.config=hunter3\n"
    )
    candidate = read_candidate(str(tmp_path / "server.properties")).candidate
    assert b"hunter" not in pickle.dumps(candidate)


def test_the_hash_and_the_name_are_those_of_the_controller(folder: Path) -> None:
    """So that it can be told whether the candidate is what was in force."""
    (folder / "rules.toml").write_text("[[partitions]]\nmax = 1\n")
    configs = {
        "topic.management.policy.class.name": f"{folder}/candidate.py:Candidate",
        "topic.management.policy.config.k": "v",
    }
    judge = PolicyJudge(build_policy(configs), read_rule_files([folder / "rules.toml"]))
    found = read_candidate(
        f"{folder}/rules.toml, {folder}/candidate.py:Candidate", ["topic.management.policy.config.k=v"]
    )
    assert (found.candidate.name, found.candidate.policy_hash) == (judge.name, judge.policy_hash)


def test_two_files_of_rules_add_up(tmp_path: Path) -> None:
    """Several files, separated by commas, judge together; and a file of another kind of policy
    beside them.
    """
    (tmp_path / "more.toml").write_text("[[replication]]\nmin = 9\n")
    at_most(tmp_path, 5)
    candidate = read_candidate(f"{tmp_path}/candidate.toml,{tmp_path}/more.toml").candidate
    assert [finding.rule for finding in ask(candidate).findings] == ["replication"]


@pytest.mark.parametrize(
    ("policy", "settings", "said"),
    [
        ("nowhere.toml", [], "The rule file nowhere.toml cannot be read: No such file or directory."),
        ("nowhere.py:Policy", [], "there is no file"),
        ("nowhere.module:Policy", [], "there is no module nowhere.module"),
        ("nowhere.properties", [], "nowhere.properties cannot be read: No such file or directory."),
        ("a:B,c:D", [], "a:B and c:D: there is one policy in Python"),
        ("{folder}/candidate.py", [], "which class of {folder}/candidate.py is the policy?"),
        ("{folder}/bad.toml", [], "bad.toml:2:1: maximum is unknown; did you mean max?"),
        ("{folder}/nothing.properties", [], "names no policy"),
        ("{folder}/candidate.toml", ["policy.timeout.ms=soon"], "policy.timeout.ms is 'soon', but must be a number"),
        ("{folder}/candidate.toml", ["policy.timeout.ms"], "--set policy.timeout.ms: write it as KEY=VALUE."),
        ("{folder}/failing.py:Failing", [], "Failing raised an exception in configure: KeyError"),
        ("", [], "names no policy"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(policy: str, settings: list[str], said: str, tmp_path: Path) -> None:
    """Files, classes, modules, keys and values: before anything is started, in the words of the
    controller where it has some.
    """
    at_most(tmp_path, 5)
    (tmp_path / "candidate.py").write_text(HEAD + "class Candidate(TopicManagementPolicy):\n    pass\n")
    (tmp_path / "bad.toml").write_text("[[partitions]]\nmaximum = 5\n")
    (tmp_path / "nothing.properties").write_text("broker.id=1\n")
    (tmp_path / "failing.py").write_text(
        HEAD + "class Failing(TopicManagementPolicy):\n    def configure(self, configs):\n        configs['no.such']\n"
    )
    with pytest.raises(CandidateError) as error:
        read_candidate(policy.format(folder=tmp_path), settings)
    assert said.format(folder=tmp_path) in str(error.value)


def test_too_much_to_send_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that reads a large file beside it has to keep that elsewhere."""
    monkeypatch.setattr("minicontroller.pipeline.backtest.policy_packaging.MAX_BYTES", 100)
    (tmp_path / "candidate.py").write_text(
        HEAD + f"X = '{'x' * 100}'\nclass Candidate(TopicManagementPolicy):\n    pass\n"
    )
    with pytest.raises(CandidateError, match="at most 100 are sent"):
        read_candidate(f"{tmp_path}/candidate.py:Candidate")


def unsteady(tmp_path: Path, text: str) -> LoadedCandidate:
    (tmp_path / "candidate.py").write_text(HEAD + text + "\n\nclass Candidate(TopicManagementPolicy):\n    pass\n")
    return read_candidate(f"{tmp_path}/candidate.py:Candidate")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import time\ndef f():\n    return time.time()", "5: time.time reads the clock"),
        ("from time import time as t\ndef f():\n    return t()", "5: time.time reads the clock"),
        (
            "from datetime import datetime\ndef f():\n    return datetime.now()",
            "5: datetime.datetime.now reads the clock",
        ),
        ("import datetime as d\ndef f():\n    return d.date.today()", "5: datetime.date.today reads the clock"),
        ("import random\ndef f():\n    return random.choice([1])", "5: random draws at random"),
        ("import os\ndef f():\n    return os.environ['HOME']", "5: os.environ reads the environment"),
        ("import urllib.request\ndef f():\n    return urllib.request.urlopen", "5: urllib.request uses the network"),
        ("def f():\n    return open('x')", "4: open reads or writes files"),
        ("import subprocess\ndef f():\n    subprocess.run([])", "5: subprocess starts processes"),
    ],
)
def test_code_that_looks_unsteady_is_named(text: str, said: str, tmp_path: Path) -> None:
    """A look at the names that its modules use, with file and line."""
    assert unsteady(tmp_path, text).nondeterministic_calls == (f"{tmp_path}/candidate.py:{said}",)


def test_code_that_looks_steady_is_not_named(tmp_path: Path) -> None:
    """Times that are computed from what is asked, names that only look alike, and modules that are
    not used.
    """
    text = (
        "import time, random\nfrom datetime import datetime, UTC\n\ndef f(request, time, open_, randomly):\n"
        "    self = randomly\n    return datetime.fromtimestamp(request.time_ms, UTC), self.open('x'), open_('y'), request.random.choice\n"
    )
    assert unsteady(tmp_path, text).nondeterministic_calls == ()


def test_what_is_read_elsewhere_is_named(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file outside of the policy's folder does not travel: it has to be the same on every
    machine, so it is told.
    """
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "teams.json"
    elsewhere.write_text(json.dumps(["a"]))
    assert unsteady(tmp_path, f"import pathlib\nTEAMS = pathlib.Path({str(elsewhere)!r}).read_text()").reads == (
        str(elsewhere),
    )


def test_the_sample_policy_is_a_candidate() -> None:
    """What the documentation shows can be tried, and looks steady."""
    found = read_candidate(f"{ROOT}/config/policy.py:PlatformPolicy")
    assert (found.nondeterministic_calls, found.reads) == ((), ())
    assert ask(found.candidate, "T").decision.value == "violated"


DEEDS = {
    "os._exit(0)": "(exit code 0): it must only define a policy.",
    "os._exit(3)": "(exit code 3): it must only define a policy.",
    "os.kill(0, signal.SIGTERM)": "(SIGTERM): it must only define a policy.",
    "sys.exit(0)": "cannot be loaded: SystemExit: 0",
    "os.fork()": "",
    "os.closerange(0, 100)": "",
}
"""What a policy does while it is imported, and what is said of it."""


def test_a_policy_that_ends_its_process_is_told(tmp_path: Path) -> None:
    """Whatever a policy does while it is loaded, the command goes on and knows."""
    for number, (side_effect, said) in enumerate(DEEDS.items()):
        file = tmp_path / f"policy_{number}.py"
        file.write_text(
            f"{HEAD}import os, signal, sys\n{side_effect}\nclass Candidate(TopicManagementPolicy):\n    pass\n"
        )
        try:
            told = "" if load_isolated(f"{file}:Candidate").names == ["Candidate"] else "another"
        except CandidateError as error:
            told = str(error)
        assert said in told and bool(said) == bool(told), side_effect


def test_a_policy_that_forks_or_wants_all_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judgement has one answer, whatever goes on from it, and memory has an end."""
    monkeypatch.setattr("minicontroller.pipeline.backtest.candidate.MEMORY_BYTES", 256 << 20)
    body = "def validate_create_topic(self, request, cluster):\n    import os\n    os.fork()\n    bytearray(1 << 30)"
    verdict = ask(in_python(tmp_path, body))
    assert verdict.message is not None and "MemoryError" in verdict.message
