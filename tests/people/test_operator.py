"""Who keeps it running: health, metrics and the page, the commands for people and for scripts, and
a quiet end.
"""

import signal

import pytest

from tests.cli.command import call
from tests.people.person import Person
from tests.support.cluster import MiniCluster
from tests.support.http import ask

pytestmark = pytest.mark.slow


def test_a_day_with_a_cluster(somebody: Person) -> None:
    """It is ready and says so, counts what was done, shows its page, tells scripts by JSON and
    codes, and ends by SIGTERM with 0.
    """
    cluster = MiniCluster(command=somebody.command, folder=somebody.folder, settings={"http.listen": "127.0.0.1:0"})
    cluster.start()
    try:
        ready = ask(cluster, "/health/ready")
        assert (ready.status, ready.json["ready"]) == (200, True)
        page = ask(cluster, "/")
        assert (page.status, page.headers["Content-Type"].partition(";")[0]) == (200, "text/html")
        made = somebody.json("topics", "create", "orders", "--partitions", "2", cluster=cluster)
        assert made["results"][0]["ok"]
        assert 'minicontroller_topics{node="1"} 1.0' in ask(cluster, "/metrics").text
        glance = somebody.json("cluster", cluster=cluster)
        assert (len(glance["brokers"]), glance["topics"], glance["partitions"]) == (3, 1, 2)
        twice = somebody.json("topics", "create", "orders", cluster=cluster, code=1)
        assert twice["results"][0]["error"]["name"] == "TOPIC_ALREADY_EXISTS"
    finally:
        cluster.stop(signal.SIGTERM)
    nobody = somebody("topics", "list", cluster=cluster)
    assert (nobody.code, nobody.stdout) == (3, "")


def test_what_is_tried_changes_nothing(somebody: Person) -> None:
    """`--dry-run` of topics and configs tells what would be, and afterwards all is as it was."""
    with somebody.up({}) as cluster:
        somebody("topics", "create", "orders", "--partitions", "2", cluster=cluster)
        assert "would be created" in somebody("topics", "create", "new", "--dry-run", cluster=cluster).stdout
        grown = somebody("topics", "alter", "orders", "--partitions", "4", "--dry-run", cluster=cluster)
        assert grown == (0, "orders: would be altered (partitions)\n", "")
        tried = somebody("configs", "set", "--topic", "orders", "retention.ms=1", "--dry-run", cluster=cluster)
        assert tried.code == 0
        wrong = somebody("configs", "set", "--topic", "orders", "retention.ms=soon", "--dry-run", cluster=cluster)
        assert wrong.code == 1
        gone = somebody("topics", "delete", "orders", "--dry-run", cluster=cluster)
        assert gone == (0, "orders: would be deleted\n", "")
        listed = somebody.json("topics", "list", cluster=cluster)["topics"]
        assert [(topic["name"], topic["partitions"]) for topic in listed] == [("orders", 2)]
        configs = somebody.json("configs", "get", "--topic", "orders", cluster=cluster)["resources"]
        assert [resource["configs"] for resource in configs] == [[]]
        somebody("configs", "set", "--topic", "orders", "retention.ms=1000", cluster=cluster)
        [resource] = somebody.json("configs", "get", "--topic", "orders", cluster=cluster)["resources"]
        assert [(config["name"], config["value"]) for config in resource["configs"]] == [("retention.ms", "1000")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes(somebody: Person, shell: str) -> None:
    """Completion is switched on as docs/commands.md says, by a script for each shell, and names the
    commands.
    """
    script = call(
        folder=somebody.folder,
        command=somebody.command,
        variables={"_MINICONTROLLER_COMPLETE": f"{shell}_source"},
    )
    assert script.code == 0
    assert str(somebody.command.name) in script.stdout
    asked = {"_MINICONTROLLER_COMPLETE": "bash_complete", "COMP_WORDS": "minicontroller top", "COMP_CWORD": "1"}
    assert call(folder=somebody.folder, command=somebody.command, variables=asked).stdout == "plain,topics\n"
