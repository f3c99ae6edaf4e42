"""Kafka's own command-line tools, of two versions, as users directly and through the gateway.

The machinery is that of tests/conformance/tools. `NAMES-` in a line stands for how names begin.
"""

import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.conformance.tools.call import CLASSES, Call
from tests.conformance.tools.running import Outcome, run
from tests.gateway.clients.worlds import FORBIDDEN, NAMES, Access
from tests.support.kafka import KAFKA_VERSION
from tests.support.kafka_kraft import NEWEST_VERSION

IN_3 = {
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
}
IN_4 = IN_3 | {
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-configs": "org.apache.kafka.tools.ConfigCommand",
}
"""Further tools, and those whose classes have other names since Kafka 4."""
CLASSES_OF = {KAFKA_VERSION: CLASSES | IN_3, NEWEST_VERSION: CLASSES | IN_4}
OPTIONS = {
    "kafka-cluster": "--config",
    "kafka-console-consumer": "--consumer.config",
    "kafka-console-producer": "--producer.config",
    "kafka-leader-election": "--admin.config",
}
"""The options of some tools for the file that others call `--command-config`."""
BEFORE_THE_SUBCOMMAND = ("kafka-features", "kafka-transactions")
TOPIC = f"{NAMES}topic"
MOVES = f'{{"version":1,"partitions":[{{"topic":"{TOPIC}","partition":1,"replicas":[1,2]}}]}}'
FILES = {
    "move.json": MOVES,
    "topics.json": f'{{"version":1,"topics":[{{"topic":"{TOPIC}"}}]}}',
    "elect.json": f'{{"partitions":[{{"topic":"{TOPIC}","partition":0}}]}}',
    "records.json": f'{{"version":1,"partitions":[{{"topic":"{TOPIC}","partition":0,"offset":1}}]}}',
    "offsets.csv": f"{TOPIC},0,1\n{TOPIC},1,0\n",
}
TYPED = "".join(f"key {number}:value {number}\n" for number in range(9))
ACL = f"--topic {NAMES}acl --allow-principal User:carol --operation Read"
CONSUMED = (
    "--from-beginning --max-messages 9 --timeout-ms 20000 --property print.key=true --property print.partition=true"
)
GROUP = f"--group {NAMES}group"
# A consumer without a group makes one up, which Kafka removes between two lists of groups.
ISOLATED = f"--group {NAMES}isolated --isolation-level read_committed"
CALLS = (
    f"kafka-topics --create --topic {TOPIC} --replica-assignment 1:2,2:1 --config retention.ms=3600000",
    f"kafka-topics --create --topic {TOPIC} --partitions 1",
    f"kafka-topics --create --topic {NAMES}{FORBIDDEN} --partitions 1",
    Call(f"kafka-topics --list --topic {TOPIC}", until="topic"),
    f"kafka-topics --alter --topic {TOPIC} --partitions 3 --replica-assignment 1:2,2:1,1",
    f"kafka-topics --alter --topic {TOPIC} --partitions 3 --replica-assignment 1:2,2:1,1:2",
    Call(f"kafka-topics --describe --topic {TOPIC}", until="PartitionCount: 3"),
    f"kafka-configs --alter --entity-type topics --entity-name {TOPIC} --add-config cleanup.policy=[compact,delete],segment.ms=70000",
    Call(f"kafka-configs --describe --entity-type topics --entity-name {TOPIC}", until="compact"),
    f"kafka-configs --alter --entity-type topics --entity-name {TOPIC} --add-config no.such=1",
    f"kafka-configs --alter --entity-type topics --entity-name {TOPIC} --delete-config segment.ms,cleanup.policy",
    f"kafka-configs --alter --entity-type users --entity-name {NAMES}user --add-config producer_byte_rate=7000",
    f"kafka-configs --describe --entity-type users --entity-name {NAMES}user",
    f"kafka-configs --alter --entity-type users --entity-name {NAMES}user --delete-config producer_byte_rate",
    "kafka-configs --describe --entity-type brokers --entity-name 1",
    "kafka-configs --describe --entity-type broker-loggers --entity-name 1",
    Call(f"kafka-console-producer --topic {TOPIC} --property parse.key=true --property key.separator=:", typed=TYPED),
    Call(f"kafka-console-producer --topic {NAMES}{FORBIDDEN} --property max.block.ms=1", typed=""),
    Call(f"kafka-console-consumer --topic {TOPIC} {CONSUMED} {GROUP}", unordered=True),
    Call(f"kafka-console-consumer --topic {TOPIC} {CONSUMED} {ISOLATED}", unordered=True),
    Call(f"kafka-console-consumer --topic {TOPIC} --partition 0 --offset earliest --max-messages 1 --timeout-ms 20000"),
    f"kafka-get-offsets --topic {TOPIC}",
    f"kafka-get-offsets --topic {TOPIC} --time earliest",
    f"kafka-get-offsets --topic-partitions {TOPIC}:0-2 --time -1",
    f"kafka-get-offsets --topic {NAMES}none",
    Call(f"kafka-consumer-groups --describe {GROUP}", unordered=True),
    f"kafka-consumer-groups --describe {GROUP} --members --verbose",
    f"kafka-consumer-groups --describe {GROUP} --state",
    Call(f"kafka-consumer-groups --reset-offsets {GROUP} --topic {TOPIC} --to-earliest --dry-run", unordered=True),
    Call(f"kafka-consumer-groups --reset-offsets {GROUP} --topic {TOPIC}:0 --shift-by -1 --execute", unordered=True),
    Call(f"kafka-consumer-groups --reset-offsets {GROUP} --from-file FOLDER/offsets.csv --execute", unordered=True),
    f"kafka-consumer-groups --delete-offsets {GROUP} --topic {TOPIC}:1",
    f"kafka-consumer-groups --describe --group {NAMES}none",
    f"kafka-consumer-groups --delete --group {NAMES}none",
    "kafka-reassign-partitions --generate --topics-to-move-json-file FOLDER/topics.json --broker-list 9",
    "kafka-reassign-partitions --execute --reassignment-json-file FOLDER/move.json",
    Call("kafka-reassign-partitions --verify --reassignment-json-file FOLDER/move.json", until="is completed"),
    "kafka-reassign-partitions --cancel --reassignment-json-file FOLDER/move.json",
    f"kafka-leader-election --election-type preferred --topic {TOPIC} --partition 0",
    "kafka-leader-election --election-type unclean --path-to-json-file FOLDER/elect.json",
    Call("kafka-delete-records --offset-json-file FOLDER/records.json", unordered=True),
    f"kafka-log-dirs --describe --topic-list {TOPIC}",
    f"kafka-transactions describe --transactional-id {NAMES}none",
    f"kafka-transactions describe-producers --topic {TOPIC} --partition 2",
    f"kafka-transactions find-hanging --topic {TOPIC}",
    f"kafka-transactions abort --topic {TOPIC} --partition 0 --producer-id 1 --producer-epoch 0 --coordinator-epoch 0",
    f"kafka-acls --add {ACL}",
    Call(f"kafka-acls --list --topic {NAMES}acl", until="ion"),  # as in "permission", and in "exception"
    f"kafka-acls --remove {ACL} --force",
    "kafka-delegation-tokens --describe",
    "kafka-cluster cluster-id",
    "kafka-features upgrade --feature no.such=1",
    f"kafka-client-metrics --describe --name {NAMES}metrics",
    f"kafka-consumer-groups --delete {GROUP}",
    f"kafka-topics --delete --topic {NAMES}none",
)
VARYING = (
    (re.compile(r"(127\.0\.0\.1|NODE-\d)(:\d+)?\s+\(\d\)"), "A-NODE (N)"),  # which one coordinates a group
    (re.compile(r"127\.0\.0\.1:\d+"), "AN-ADDRESS"),
    (re.compile(r"\(id: -?\d+ rack: null( isFenced: false)?\)"), "(A NODE)"),
    (re.compile(r'(?<="size": )\d+'), "A-SIZE"),
    (re.compile(r"^\d+(?=\s+\d+\s+-?\d+\s+\d+\s+\d{13})", re.MULTILINE), "A-PRODUCER"),
    (re.compile(r"\b\d{13}\b"), "A-TIME"),
    (re.compile(r"[ \t]+"), " "),  # columns are as wide as names
)
"""Texts that differ from way to way, and the words that stand for them in a comparison."""

NOISE = "ERROR Reconfiguration failed"
"""Log4j writes this line once in a process of Java."""


def by_tools(accesses: Sequence[Access], version: str) -> list[list[str]]:
    """Return the lines that the tools of a version write, on all ways at once."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda access: _lines(access, version), accesses))


def _lines(access: Access, version: str) -> list[str]:
    files = {"user": "".join(f"{key}={value}\n" for key, value in access.java().items() if key != "bootstrap.servers")}
    files |= {name: text.replace(NAMES, access.prefix) for name, text in FILES.items()}
    calls = [_as_user(each if isinstance(each, Call) else Call(each), access.prefix) for each in CALLS]
    with tempfile.TemporaryDirectory() as folder:
        made = run(calls, files, {1: access.bootstrap}, Path(folder), version=version, classes=CLASSES_OF[version])
    return [line for each in made for line in _told(each, access.prefix)]


def _as_user(call: Call, prefix: str) -> Call:
    """Return a call with the user's login, about what belongs to the user."""
    tool, rest = call.line.replace(NAMES, prefix).split(" ", 1)
    login = f"{OPTIONS.get(tool, '--command-config')} FOLDER/user"
    words = f"{login} {rest}" if tool in BEFORE_THE_SUBCOMMAND else f"{rest} {login}"
    return replace(call, line=f"{tool} {words}")


def _told(outcome: Outcome, prefix: str) -> list[str]:
    text = outcome.text
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    if f"--create --topic {prefix}{FORBIDDEN}" in outcome.line:
        return [f"refused = {' '.join(text.splitlines())}"]
    written = [line for line in text.splitlines() if NOISE not in line]
    lines = [" ".join(sorted(line.split())) if "NEW-OFFSET" in line else line for line in written]
    return [f"{outcome.line} | {line}" for line in [*lines, f"ends with {outcome.code}"]]
