"""The command lines of tests/conformance/tools through a gateway before a real Kafka 3.9.1 on
ZooKeeper: what the tools write is what was recorded without a gateway.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.conformance.scenario import KAFKA_SETTINGS
from tests.conformance.tools import plain, secured
from tests.conformance.tools.call import Call
from tests.conformance.tools.record import PAUSE_SECONDS
from tests.conformance.tools.running import by_part, recorded, run
from tests.support.gateway import running_gateway
from tests.support.kafka import running_kafka
from tests.support.wire import Wire

Say = Callable[[str], None]
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


TELLS_VERSIONS = "$ kafka-broker-api-versions"
"""It shows what docs/gateway.md says not to pass."""


def tools_of_conformance(say: Say) -> int:
    """Return how many command lines wrote something else."""
    with running_kafka() as kafka, running_gateway(kafka.bootstrap) as gateway:
        differ = _compared(say, plain.PLAIN, plain.FILES, gateway.addresses)
    user, password = "admin", "admin-secret"
    settings = {
        "upstream.security.protocol": "SASL_PLAINTEXT",
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.jaas.config": f'{LOGIN} username="{user}" password="{password}";',
    }
    with (
        running_kafka(settings=KAFKA_SETTINGS, login=(user, password)) as kafka,
        running_gateway(kafka.bootstrap, settings=settings) as gateway,
    ):
        with Wire(gateway.bootstrap, login=(user, password)) as wire:
            brokers = wire.ask("Metadata", 1, {"topics": []})["brokers"]
        addresses = {broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in brokers}
        return differ + _compared(say, secured.SECURED, secured.FILES, addresses)


def _compared(
    say: Say, parts: Mapping[str, Sequence[Call]], files: Mapping[str, str], addresses: Mapping[int, str]
) -> int:
    calls = [call for each in parts.values() for call in each]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(calls, files, addresses, Path(folder), pause_seconds=PAUSE_SECONDS)
    differ = 0
    for name, each in by_part(parts, outcomes).items():
        pairs = list(zip(map(str, each), map(str, recorded(name)), strict=True))
        say(f"{name}: {sum(ours == theirs for ours, theirs in pairs)} of {len(pairs)} command lines write the same")
        for ours, theirs in pairs:
            if ours != theirs:
                differ += not theirs.startswith(TELLS_VERSIONS)
                say(f"    direct: {theirs}    gateway: {ours}" if differ else f"    as known: {theirs.splitlines()[0]}")
    return differ
