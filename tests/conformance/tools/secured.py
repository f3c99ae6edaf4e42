"""Calls to a cluster whose clients log in and need ACLs: by its super user, and by alice, who has
no right but what ACLs give her.
"""

from tests.conformance.tools.call import Call


def log_in(user: str, password: str = "", mechanism: str = "PLAIN") -> str:
    login = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return (
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{login} required "
        f'username="{user}" password="{password or user + "-secret"}";\n'
    )


FILES = {
    "admin": log_in("admin"),
    "alice": log_in("alice"),
    "wrong": log_in("alice", "no secret"),
    "to.json": '{"version":1,"partitions":[{"topic":"s1","partition":0,"replicas":[1]}]}',
    "records.json": '{"version":1,"partitions":[{"topic":"s1","partition":0,"offset":0}]}',
}


OPTIONS = {"kafka-leader-election": "--admin.config", "kafka-cluster": "--config"}
"""The options of some tools for the file that others call `--command-config`."""
BEFORE_THE_SUBCOMMAND = {"kafka-features", "kafka-transactions"}
"""The tools that want it there."""


def as_user(user: str, tool: str, *lines: str, unordered: bool = False, until: str = "") -> list[Call]:
    """Return calls of a tool with the login of a user."""
    option = f"{OPTIONS.get(tool, '--command-config')} FOLDER/{user}"
    words = [f"{option} {line}" if tool in BEFORE_THE_SUBCOMMAND else f"{line} {option}" for line in lines]
    return [Call(f"{tool} {each.strip()}", unordered=unordered, until=until) for each in words]


ACLS = [
    *as_user("admin", "kafka-topics", "--create --topic s1 --replica-assignment 1", "--create --topic s2 --replica-assignment 2"),
    *as_user(
        "admin",
        "kafka-acls",
        "",
        "--list",
        "--list --add",
        "--add",
        "--add --topic s1",
        "--add --topic s1 --allow-principal User:bob --operation Nonsense",
        "--add --topic s1 --allow-principal User:bob --operation ClusterAction",
        "--add --topic s1 --allow-principal bob",
        "--add --topic s1 --allow-principal User:bob --resource-pattern-type match",
        "--add --topic s1 --allow-principal User:bob --resource-pattern-type nonsense",
        "--add --topic s1 --allow-principal User:bob --operation Read",
        "--add --topic s1 --allow-principal User:bob --operation Read",
        "--add --topic s --allow-principal User:bob --operation Write --resource-pattern-type prefixed",
        "--add --topic s2 --deny-principal User:* --deny-host 10.9.8.7 --operation Delete",
        "--add --cluster --allow-principal User:bob --operation Create",
        "--add --transactional-id x --allow-principal User:bob --operation Write",
        "--add --delegation-token x --allow-principal User:bob --operation Describe",
        "--add --user-principal User:carol --allow-principal User:bob --operation CreateTokens",
        "--list --topic none",
        "--list --topic s1",
        "--list --principal User:nobody",
        "--remove --topic none --force",
        "--remove --topic s1 --allow-principal User:bob --operation Read --force",
        "--remove --topic s1 --allow-principal User:bob --operation Read",
    ),
    *as_user(
        "admin",
        "kafka-acls",
        "--add --producer --topic s1 --allow-principal User:bob --transactional-id x --idempotent",
        "--add --consumer --topic s1 --group g --allow-principal User:bob --allow-host 1.2.3.4",
        "--add --consumer --topic s1 --allow-principal User:bob",
        "--add --producer --group g --allow-principal User:bob",
        "--list --principal User:bob",
        "--list --cluster --transactional-id x",
        "--list --topic s1 --resource-pattern-type match",
        "--list --topic s1 --resource-pattern-type any",
        "--remove --producer --topic s1 --allow-principal User:bob --transactional-id x --force",
        "--remove --topic s --resource-pattern-type prefixed --force",
        "--remove --topic s1 --group g --cluster --transactional-id x --force",
        "--list",
        unordered=True,
    ),
]  # fmt: skip

DENIED = [
    *as_user("wrong", "kafka-topics", "--list"),
    *as_user(
        "alice",
        "kafka-topics",
        "--list",
        "--create --topic s3 --partitions 1",
        "--describe --topic s1",
        "--alter --topic s1 --partitions 2",
        "--delete --topic s1",
    ),
    *as_user("alice", "kafka-acls", "--list", "--add --topic s1 --allow-principal User:bob", "--remove --topic s1 --force"),
    *as_user(
        "alice",
        "kafka-configs",
        "--describe --entity-type topics --entity-name s1",
        "--alter --entity-type topics --entity-name s1 --add-config segment.ms=1",
        "--describe --entity-type brokers --entity-name 1",
        "--alter --entity-type brokers --entity-name 1 --add-config log.retention.ms=1",
        "--describe --entity-type users",
        "--alter --entity-type users --entity-name al --add-config producer_byte_rate=10",
        "--alter --entity-type users --entity-name al --add-config SCRAM-SHA-256=[password=x]",
    ),
    *as_user(
        "alice",
        "kafka-reassign-partitions",
        "--list",
        "--execute --reassignment-json-file FOLDER/to.json",
        "--verify --reassignment-json-file FOLDER/to.json",
        "--cancel --reassignment-json-file FOLDER/to.json",
    ),
    *as_user(
        "alice",
        "kafka-leader-election",
        "--election-type preferred --all-topic-partitions",
        "--election-type preferred --topic s1 --partition 0",
        "--election-type unclean --topic s1 --partition 0",
    ),
    *as_user("alice", "kafka-log-dirs", "--describe"),
    *as_user("alice", "kafka-delete-records", "--offset-json-file FOLDER/records.json"),
    *as_user("alice", "kafka-get-offsets", "--topic s1"),
    *as_user(
        "alice",
        "kafka-consumer-groups",
        "--list",
        "--describe --group g",
        "--reset-offsets --group g --topic s1:0 --to-offset 0 --execute",
        "--delete-offsets --group g --topic s1:0",
        "--delete --group g",
    ),
    *as_user(
        "alice",
        "kafka-transactions",
        "list",
        "describe --transactional-id x",
        "describe-producers --topic s1 --partition 0",
        "abort --topic s1 --partition 0 --producer-id 1 --producer-epoch 0 --coordinator-epoch 0",
    ),
    *as_user("alice", "kafka-features", "describe", "upgrade --feature f=1"),
    *as_user("alice", "kafka-cluster", "cluster-id", "unregister --id 3"),
]  # fmt: skip

TOKEN = r"\S+\s+(\S+=)\s+User:"
TOKENS = [
    *as_user("alice", "kafka-delegation-tokens", "", "--describe", "--create", "--create --describe --max-life-time-period -1"),
    *as_user("alice", "kafka-delegation-tokens", "--create --max-life-time-period x"),
    *as_user("alice", "kafka-delegation-tokens", "--create --max-life-time-period -1 --owner-principal User:bob"),
    *as_user("alice", "kafka-delegation-tokens", "--create --max-life-time-period -1 --owner-principal bob"),
    Call(
        "kafka-delegation-tokens --create --max-life-time-period 864000000 --renewer-principal User:bob --command-config FOLDER/alice",
        learns=TOKEN,
    ),
    *as_user("alice", "kafka-delegation-tokens", "--describe"),
    *as_user("alice", "kafka-delegation-tokens", "--describe --owner-principal User:alice", until="User:bob"),
    *as_user(
        "alice",
        "kafka-delegation-tokens",
        "--describe --owner-principal User:bob",
        "--renew --hmac {learned}",
        "--renew --hmac {learned} --renew-time-period 3600000",
        "--renew --hmac {learned} --renew-time-period -1",
        "--renew --hmac bm90aGluZw== --renew-time-period -1",
        "--expire --hmac bm90aGluZw== --expiry-time-period -1",
        "--expire --hmac {learned} --expiry-time-period 600000",
        "--expire --hmac {learned} --expiry-time-period -1",
        "--describe",
    ),
]  # fmt: skip

SECURED = {"acls": ACLS, "denied": DENIED, "tokens": TOKENS}
