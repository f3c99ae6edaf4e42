"""The keys of Kafka's clients (AdminClientConfig, SslConfigs, SaslConfigs): followed, ignored or
warned about.

Rule: a key that would change nothing here is accepted silently. A key that Kafka follows and this
client does not is a warning, and so is an unknown key.
"""

TLS_KEYS = frozenset(
    {
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)

LOGIN_KEYS = frozenset({"sasl.mechanism", "sasl.jaas.config"})
TIMES = ("request.timeout.ms", "default.api.timeout.ms", "retry.backoff.ms")
FOLLOWED = {
    "bootstrap.servers",
    "client.id",
    "security.protocol",
    *LOGIN_KEYS,
    *TIMES,
    *TLS_KEYS,
}
WITHOUT_EFFECT = frozenset(
    [
        "client.dns.lookup",
        "connections.max.idle.ms",
        "enable.metrics.push",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ]
)
FAMILIES = ("metrics.", "auto.", "sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.")
"""How keys without effect begin that are too many to list."""
NOT_FOLLOWED = frozenset(
    [
        "bootstrap.controllers",
        "config.providers",
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "security.providers",
        "ssl.engine.factory.class",
    ]
)
"""Keys by which Kafka's clients would connect, trust or read values otherwise than this one."""


def is_followed_by_kafka_alone(key: str) -> bool:
    """Return whether Kafka's clients would do something by this key that this one does not."""
    return key in NOT_FOLLOWED or key.startswith("config.providers.")


def is_known(key: str) -> bool:
    """Return whether the key is followed, or changes nothing here."""
    return key in FOLLOWED or key in WITHOUT_EFFECT or key.startswith(FAMILIES)


def doubt_about(key: str) -> str:
    if is_followed_by_kafka_alone(key):
        return f"{key} is not supported by this client."
    if is_known(key):
        return ""
    from difflib import get_close_matches

    near = get_close_matches(key, FOLLOWED, n=1)
    return f"Kafka's clients have no key {key}{f'; did you mean {near[0]}?' if near else '.'}"
