"""Who writes the rules: from an empty folder to a cluster that refuses, and that follows the file
while it runs.
"""

from xml.etree import ElementTree as ET

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.people.person import Person
from tests.support.waiting import until

pytestmark = pytest.mark.slow

RULES = """[[partitions]]
max = MOST
message = "At most MOST partitions."

[[name_pattern]]
pattern = "[a-z]+\\\\.[a-z]+"
message = "A name is team.subject."
"""
CASES = """[[case]]
name = "small enough"
request = { topic = "sales.orders", after = { partitions = 2 } }

[[case]]
name = "too large"
request = { topic = "sales.orders", after = { partitions = 9 } }
expect = "deny"
message = "At most 2"

[[case]]
name = "no team"
request = { topic = "orders", after = { partitions = 1 } }
expect = "deny"
"""


def rules(most: object) -> str:
    return RULES.replace("MOST", str(most))


def refusal(admin: AdminClient, name: str, partitions: int, *, only_asks: bool = False) -> str | None:
    """Return the error of a client of librdkafka; None if the topic is made, or would be."""
    try:
        admin.create_topics([NewTopic(name, partitions, 1)], validate_only=only_asks)[name].result()
    except KafkaException as error:
        return str(error.args[0].str())
    return None


def test_rules_are_written_mended_and_tried(somebody: Person) -> None:
    """A mistake is named with file, line and what was probably meant; mended, the cases pass, and
    CI gets its report.
    """
    somebody.write("rules.toml", rules(2).replace("max", "maks", 1))
    checked = somebody("policy", "check", "rules.toml")
    assert (checked.code, checked.stdout) == (1, "")
    assert "rules.toml:2:1: maks is unknown; known are action, client_ids," in checked.stderr
    somebody.write("rules.toml", rules(2))
    checked = somebody("policy", "check", "rules.toml")
    assert (checked.code, checked.stderr) == (0, "")
    assert checked.stdout.startswith("2 rules, no mistake; ")
    somebody.write("rules.cases.toml", CASES)
    tried = somebody("policy", "test", ".", "--junit", "report.xml")
    assert tried == (0, "3 cases, 0 failed\n", "")
    [suite] = ET.parse(somebody.folder / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "0")


def test_a_running_cluster_follows_the_file(somebody: Person) -> None:
    """A real client reads the rule's reason; a new rule bites without a restart; a mistake keeps
    the old ones, an emptied file too, and is told.
    """
    somebody.write("rules.toml", rules(2))
    settings = {
        "policy.rules.files": "rules.toml",
        "policy.rules.reload.interval.ms": "50",
        "audit.dir": "audit",
        "http.listen": "127.0.0.1:0",
    }
    with somebody.up(settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        assert refusal(admin, "sales.orders", 3) == "At most 2 partitions."
        assert refusal(admin, "orders", 1) == "A name is team.subject."
        assert refusal(admin, "sales.orders", 2) is None
        somebody.write("rules.toml", rules(1))
        until(lambda: refusal(admin, "sales.clicks", 2, only_asks=True) == "At most 1 partitions.")
        assert refusal(admin, "sales.clicks", 2) == "At most 1 partitions."
        somebody.write("rules.toml", rules("'none'"))
        cluster.wait_for("The rules have changed but cannot be used; those in force stay:")
        cluster.wait_for("rules.toml:2:1: max is a string")
        assert refusal(admin, "sales.returns", 2) == "At most 1 partitions."
        somebody.write("rules.toml", "")
        until(
            lambda: (
                refusal(admin, "sales.returns", 2) != "At most 1 partitions."
                or "the file has no rules" in cluster.output
            )
        )
        assert refusal(admin, "sales.returns", 2) == "At most 1 partitions."
        somebody.write("rules.toml", rules(3))
        until(lambda: refusal(admin, "sales.returns", 3, only_asks=True) is None)
        assert refusal(admin, "sales.returns", 3) is None
