"""`policy check` and `policy test`, as somebody uses them who writes rules and has no Python."""

import json
import shutil
import signal
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.cli.policy_cases import CaseError, read_request
from minicontroller.policies import DeleteRecordsRequest
from tests.cli.command import call, complaint, end, running

PATIENCE_CALLS = 60
SAMPLES = Path(__file__).parents[2] / "config"

GOOD = """[[rule]]
name = "three replicas"
operations = "create"
condition = "after.replication_factor >= 3"
message_expression = "request.topic + ' has only ' + string(after.replication_factor)"
"""
CASES = """[[case]]
name = "enough"
request = { topic = "a", after = { replication = 3 } }

[[case]]
name = "too few <&>"
request = { topic = "a", after = { replication = 2 } }
expect = "EXPECT"
rule = "three replicas"
message = "only 2"
"""


def test_files_that_are_no_toml(tmp_path: Path) -> None:
    """Rules, requests and cases that lack a sign are told like any mistake, all at once: with file,
    line, column, and what is missing.
    """
    (tmp_path / "one.toml").write_text('[[partitions]]\nmax = 5\ntopics = ["a", "b"\n')
    (tmp_path / "two.toml").write_text("[[partitions]]\nmax = 0\n")
    (tmp_path / "request.toml").write_text('[request]\ntopic = "a\n')
    (tmp_path / "wrong.toml").write_text("[request]\ntopic = 1\n")
    requests = ("--request", "request.toml", "--request", "wrong.toml")
    outcome = call("policy", "check", "one.toml", "two.toml", *requests, folder=tmp_path)
    assert outcome.stderr.splitlines() == [
        "one.toml:3:10: this is not TOML: the list that begins here is not closed: its ] is missing",
        "two.toml:2:1: max is 0, but must be at least 1",
        'request.toml:2:9: this is not TOML: the text that begins here is not closed: its " is missing on this line',
        "wrong.toml: Expected `str`, got `int` - at `$.request.topic`",
        "Error: 4 mistakes.",
    ]
    (tmp_path / "a.cases.toml").write_text('[[case]]\nname = "a\n')
    (tmp_path / "b.cases.toml").write_text("[[case]]\nname = 1\n[[case]]\nrequest = { topic = 1 }\n")
    assert complaint("policy", "test", ".", folder=tmp_path).splitlines() == [
        'a.cases.toml:2:8: this is not TOML: the text that begins here is not closed: its " is missing on this line',
        "b.cases.toml: case 1: Expected `str`, got `int` - at `$.name`",
        "b.cases.toml: case 2: Expected `str`, got `int` - at `$.request.topic`",
    ]


def test_check_names_every_mistake(tmp_path: Path) -> None:
    """Each mistake is a line with file, line and column, the code is 1, and nothing
    is on stdout.
    """
    (tmp_path / "bad.toml").write_text("[[partitions]]\nmaks = 1\nmin = 0\n" + GOOD.replace("factor", "facto"))
    outcome = call("policy", "check", "bad.toml", folder=tmp_path)
    assert (outcome.code, outcome.stdout) == (1, "")
    assert [line.split(": ")[0] for line in outcome.stderr.splitlines()] == [
        "bad.toml:2:1", "bad.toml:3:1", "bad.toml:7:20", "bad.toml:8:67", "Error"
    ]  # fmt: skip
    assert "after has no replication_facto; did you mean replication_factor?" in outcome.stderr


def test_check_warns_of_what_does_not_hold(tmp_path: Path) -> None:
    """A quota without its name pattern is no mistake: it is told on stderr, and the code is 0."""
    (tmp_path / "quota.toml").write_text("[[quota]]\nowned = '{user}.*'\nmax_topics = 1\n")
    outcome = call("policy", "check", "quota.toml", folder=tmp_path)
    assert (outcome.code, outcome.stdout.split(";")[0]) == (0, "1 rule, no mistake")
    assert outcome.stderr.startswith("warning: quota counts the topics called {user}.*, whoever creates them")
    sample = call("policy", "check", str(SAMPLES / "rules.toml"), folder=tmp_path)
    assert (sample.code, sample.stderr) == (0, "")


def test_check_tries_requests(tmp_path: Path) -> None:
    """Sample requests are judged, each with what the caller would read; code 3 tells that one would
    be refused.
    """
    (tmp_path / "good.toml").write_text(GOOD)
    for name, replicas in (("two", 2), ("three", 3)):
        (tmp_path / f"{name}.toml").write_text(f'[request]\ntopic = "orders"\nafter = {{ replication = {replicas} }}\n')
    outcome = call("policy", "check", "good.toml", "--request", "two.toml", "--request", "three.toml", folder=tmp_path)
    assert (outcome.code, outcome.stderr) == (3, "")
    first, *rest = outcome.stdout.splitlines()
    assert first.startswith("1 rule, no mistake; ")
    assert rest == [
        "two.toml: deny",
        "  deny by three replicas: orders has only 2",
        "  The caller gets POLICY_VIOLATION (44).",
        "three.toml: allow",
    ]
    assert call("policy", "check", "good.toml", "--request", "three.toml", folder=tmp_path).code == 0


def test_check_tells_what_is_wrong_with_a_request(tmp_path: Path) -> None:
    """What is wrong with a sample request is told in a sentence with its file."""
    (tmp_path / "good.toml").write_text(GOOD)
    for text, complained in (
        ("[request]\ntopik = 'a'", "r.toml: Object contains unknown field `topik` - at `$.request`"),
        (
            "[request]\ntopic = 'a'\noperation = 'creat'",
            "r.toml: case 1: there is no operation 'creat'; did you mean create?",
        ),
        ("[request]\ntopic = 'a'\ntime = 2024-01-01T00:00:00", "has no zone"),
        ("nonsense", "r.toml:1:9: this is not TOML: after the key here, = "),
        ("[request]\ntopic = 'a'\noperation = 'reassign'", "reassign names no partition in reassignments"),
        ("[request]\ntopic = 'a'\noperation = 'reassign'\nreassignments = { 7 = [1] }", "a has no partition 7"),
        (
            "[request]\ntopic = 'a'\noperation = 'delete_records'\ndelete_records_offsets = { x = 1 }",
            "'x' is no number of a partition",
        ),
    ):
        (tmp_path / "r.toml").write_text(text)
        outcome = call("policy", "check", "good.toml", "--request", "r.toml", folder=tmp_path)
        assert outcome.code == 1
        assert complained in outcome.stderr


def test_called_wrongly(tmp_path: Path) -> None:
    """Code 2 where the call itself is wrong."""
    (tmp_path / "empty").mkdir()
    assert "does not exist" in complaint("policy", "check", "nosuch.toml", folder=tmp_path, code=2)
    assert "Missing argument" in complaint("policy", "check", folder=tmp_path, code=2)
    assert "does not exist" in complaint("policy", "test", "nosuch", folder=tmp_path, code=2)
    assert "no *.cases.toml" in complaint("policy", "test", "empty", folder=tmp_path, code=2)


def test_cases_pass_and_fail(tmp_path: Path) -> None:
    """Code 0 where all are as expected, 1 where one is not, and JUnit's report tells the same."""
    (tmp_path / "own.toml").write_text(GOOD)
    cases = tmp_path / "own.cases.toml"
    cases.write_text(CASES.replace("EXPECT", "deny"))
    outcome = call("policy", "test", ".", "--junit", "report.xml", folder=tmp_path)
    assert outcome == (0, "2 cases, 0 failed\n", "")
    cases.write_text(CASES.replace("EXPECT", "allow"))
    outcome = call("policy", "test", ".", "--junit", "report.xml", folder=tmp_path)
    assert (outcome.code, outcome.stderr) == (1, "")
    assert outcome.stdout.splitlines() == [
        "own.cases.toml: too few <&>: expected allow, but it is deny (three replicas: a has only 2)",
        "2 cases, 1 failed",
    ]
    [suite] = ET.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [(case.get("name"), len(case)) for case in suite] == [("enough", 0), ("too few <&>", 1)]


def test_cases_of_partitions(tmp_path: Path) -> None:
    """Reassignments and deletions of records are put to the rules as a node puts them."""
    (tmp_path / "own.toml").write_text(
        """
        [[replication]]
        min = 2
        [[rule]]
        name = "stay"
        operations = "reassign"
        condition = "request.reassignments.all(p, request.reassignments[p] == null || !(9 in request.reassignments[p]))"
        [[rule]]
        name = "keep"
        operations = "delete_records"
        condition = "request.delete_records_offsets.all(p, request.delete_records_offsets[p] != -1)"
        """
    )
    (tmp_path / "own.cases.toml").write_text(
        """
        [[case]]
        request = { topic = "a", operation = "reassign", reassignments = { 1 = [3, 4] } }
        before = { replicas = [[1], [1, 2]] }
        [[case]]
        request = { topic = "a", operation = "reassign", reassignments = { 1 = [9, 4] } }
        before = { replicas = [[1], [1, 2]] }
        expect = "deny"
        rule = "stay"
        [[case]]
        request = { topic = "a", operation = "reassign", reassignments = { 0 = [], 1 = [3] } }
        before = { replicas = [[1], [1, 2]] }
        expect = "deny"
        message = "1 replica is fewer than 2."
        [[case]]
        request = { topic = "a", operation = "delete_records", delete_records_offsets = { 0 = 5 } }
        [[case]]
        request = { topic = "a", operation = "delete_records", delete_records_offsets = { 0 = 5, 1 = -1 } }
        expect = "deny"
        rule = "keep"
        """
    )
    assert call("policy", "test", ".", folder=tmp_path) == (0, "5 cases, 0 failed\n", "")


def test_cases_of_rules_with_a_mistake(tmp_path: Path) -> None:
    """The mistake is told, and no case counts as passed."""
    (tmp_path / "own.toml").write_text("x = 1\n")
    (tmp_path / "own.cases.toml").write_text(CASES.replace("EXPECT", "deny"))
    outcome = call("policy", "test", ".", folder=tmp_path)
    assert (outcome.code, outcome.stdout) == (1, "")
    assert "own.toml:1:1: x is unknown" in outcome.stderr


def test_the_sample_holds(tmp_path: Path) -> None:
    """config/rules.toml has no mistake, and its cases pass."""
    for name in ("rules.toml", "rules.cases.toml"):
        shutil.copy(SAMPLES / name, tmp_path)
    assert call("policy", "check", "rules.toml", folder=tmp_path).code == 0
    assert call("policy", "test", ".", folder=tmp_path) == (0, "18 cases, 0 failed\n", "")


def test_a_platform_engineer_begins(tmp_path: Path) -> None:
    """From an empty folder: a rule is written and checked, refuses at the running cluster, is
    relaxed there, and lets pass.
    """
    write = (tmp_path / "rules.toml").write_text
    write("[[partitions]]\nmax = 2\nmessage = 'Two are enough.'\n")
    assert call("policy", "check", "rules.toml", folder=tmp_path).code == 0
    settings = [f"--set={key}" for key in ("policy.rules.files=rules.toml", "policy.rules.reload.interval.ms=50")]
    with running("up", "--port", "0", *settings, folder=tmp_path) as process:
        assert process.stdout is not None
        bootstrap = process.stdout.readline().partition("bootstrap.servers=")[2].split()[0]
        create = ("topics", "create", "orders", "--partitions", "3", "--bootstrap-server", bootstrap)
        refused = call(*create, folder=tmp_path)
        assert refused.code == 1
        assert "Two are enough." in refused.stdout + refused.stderr
        write("[[partitions]]\nmax = 'many'\n")
        write("[[partitions]]\nmax = 3\n")
        assert any(call(*create, folder=tmp_path).code == 0 for _ in range(PATIENCE_CALLS))
        end(process, signal.SIGINT)


def test_a_node_does_not_start_with_a_mistake(tmp_path: Path) -> None:
    """A node with a mistake in its rules says where it is, and nothing passes by accident."""
    (tmp_path / "rules.toml").write_text("[[partitions]]\nmax = 'many'\n")
    said = complaint("up", "--port", "0", "--set", "topic.management.policy.class.name=rules.toml", folder=tmp_path)
    assert "rules.toml:2:1: max is a string, but must be a whole number" in said


def test_check_knows_brokers(tmp_path: Path) -> None:
    """A request may be about the default of all brokers, and is told when it mixes a broker up with
    a topic.
    """
    (tmp_path / "bounds.toml").write_text("[[config_bounds]]\nconfigs = { 'retention.ms' = { max = 3600000 } }\n")
    asked = "[request]\noperation = 'alter_broker'\nafter = { configs = { 'log.retention.hours' = ' 02' } }\n"
    (tmp_path / "two.toml").write_text(asked)
    (tmp_path / "one.toml").write_text(asked.replace("02", "01"))
    (tmp_path / "both.toml").write_text(f"{asked}topic = 'x'\n")
    outcome = call("policy", "check", "bounds.toml", "--request", "two.toml", "--request", "one.toml", folder=tmp_path)
    assert outcome.stdout.splitlines()[1:] == [
        "two.toml: deny",
        "  deny by config_bounds: retention.ms 7200000 (by log.retention.hours) is more than 3600000.",
        "  The caller gets POLICY_VIOLATION (44).",
        "one.toml: allow",
    ]
    mixed = call("policy", "check", "bounds.toml", "--request", "both.toml", folder=tmp_path)
    assert (mixed.code, "alter_broker is about a broker, and names a topic" in mixed.stderr) == (1, True)


def test_check_knows_administration(tmp_path: Path) -> None:
    """A request may be about ACLs, users or groups, and is told when it names a topic, too."""
    (tmp_path / "bounds.toml").write_text(
        "[[protected_operations]]\noperations = 'acls'\nresources = 'Topic:*'\n"
        "[[rule]]\nname = 'counts'\noperations = 'delete_acls'\n"
        'condition = \'request.config_operations["a"] == null && request.kind == "acl"\'\n'
    )
    asked = "[request]\noperation = 'delete_acls'\nresource = '{}:LITERAL:x'\nconfig_operations = {{ a = '' }}\n"
    (tmp_path / "topic.toml").write_text(asked.format("Topic"))
    (tmp_path / "group.toml").write_text(asked.format("Group"))
    outcome = call(
        "policy", "check", "bounds.toml", "--request", "topic.toml", "--request", "group.toml", folder=tmp_path
    )
    assert outcome.stdout.splitlines()[1:] == [
        "topic.toml: deny",
        "  deny by protected_operations: User:ANONYMOUS may not delete ACLs of Topic:LITERAL:x.",
        "  The caller gets POLICY_VIOLATION (44).",
        "group.toml: allow",
    ]
    for number, (keys, complained) in enumerate(
        (
            ("operation = 'delete_acls'\ntopic = 'x'", "delete_acls is about a resource, and names a topic"),
            ("operation = 'elect_leaders'\nbroker = '1'", "elect_leaders is about a resource, and names a broker"),
            ("topic = 'x'\nresource = 'x'", "create names a resource, which is for acls, tokens, groups, admin"),
        )
    ):
        (tmp_path / f"{number}.toml").write_text(f"[request]\n{keys}\n")
        with pytest.raises(CaseError, match=complained):
            read_request(tmp_path / f"{number}.toml")


@given(
    partition=st.integers(0, 10**12).map(str)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=12),
    offset=st.integers(-1, 2**63 - 1),
)
@settings(max_examples=60)
def test_partitions_are_numbers(partition: str, offset: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any key of a request's partitions is a number that a partition may have, or a mistake."""
    file = tmp_path_factory.getbasetemp() / "partition.toml"
    key = json.dumps(partition, ensure_ascii=False)
    text = f"[request]\ntopic = 'a'\noperation = 'delete_records'\ndelete_records_offsets = {{ {key} = {offset} }}\n"
    file.write_text(text)
    if partition.isdecimal() and partition.isascii() and len(partition) < 10:
        request = read_request(file).request
        assert isinstance(request, DeleteRecordsRequest)
        assert request.delete_records_offsets == {int(partition): offset}
    else:
        with pytest.raises(CaseError, match="is no number of a partition"):
            read_request(file)
