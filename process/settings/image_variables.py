"""Variables by which the images of Bitnami, wurstmeister, Confluent and Apache configure a broker
otherwise than by the names of Kafka's keys, and what sets the same here.
"""

from collections.abc import Mapping
from types import MappingProxyType

_ADVERTISED = "set KAFKA_ADVERTISED_LISTENERS, such as PLAINTEXT://kafka:9092"
_KRAFT = "nodes keep their metadata in ZooKeeper; set KAFKA_ZOOKEEPER_CONNECT"
_NO_COMMANDS = "no command is run for a setting; set {}"
_USERS = (
    "set sasl.jaas.config for the mechanism of a listener, such as KAFKA_LISTENER_NAME_CLIENT_PLAIN_SASL_JAAS_CONFIG"
)
_SHARED_FILE = "the image keeps no secrets in files of its own; set {}"

MEANT: Mapping[str, str] = MappingProxyType(
    {
        # wurstmeister, and others that began then
        "KAFKA_ADVERTISED_HOST_NAME": _ADVERTISED,
        "KAFKA_ADVERTISED_HOST": _ADVERTISED,
        "KAFKA_ADVERTISED_PORT": _ADVERTISED,
        "KAFKA_ADVERTISED_PROTOCOL_NAME": _ADVERTISED,
        "KAFKA_HOST_NAME": "set KAFKA_LISTENERS",
        "KAFKA_PORT": "set KAFKA_LISTENERS",
        "KAFKA_PROTOCOL_NAME": "set KAFKA_LISTENERS",
        "KAFKA_CREATE_TOPICS": "no topics are made at the start; make them with minicontroller topics create",
        "KAFKA_BROKER_ID_COMMAND": _NO_COMMANDS.format("KAFKA_BROKER_ID"),
        # Bitnami
        "KAFKA_CLIENT_USERS": _USERS,
        "KAFKA_CLIENT_PASSWORDS": _USERS,
        "KAFKA_CLIENT_LISTENER_NAME": _USERS,
        "KAFKA_INTER_BROKER_USER": _USERS,
        "KAFKA_INTER_BROKER_PASSWORD": _USERS,
        "KAFKA_CONTROLLER_USER": _KRAFT,
        "KAFKA_CONTROLLER_PASSWORD": _KRAFT,
        "KAFKA_ENABLE_KRAFT": _KRAFT,
        "KAFKA_KRAFT_CLUSTER_ID": _KRAFT,
        "KAFKA_CLUSTER_ID": _KRAFT,
        "KAFKA_TLS_TYPE": "set KAFKA_SSL_KEYSTORE_TYPE and KAFKA_SSL_TRUSTSTORE_TYPE",
        "KAFKA_TLS_CLIENT_AUTH": "set KAFKA_SSL_CLIENT_AUTH",
        "KAFKA_TLS_KEYSTORE_FILE": "set KAFKA_SSL_KEYSTORE_LOCATION",
        "KAFKA_TLS_TRUSTSTORE_FILE": "set KAFKA_SSL_TRUSTSTORE_LOCATION",
        "KAFKA_TLS_INTER_BROKER_AUTH": "set ssl.client.auth for the listener of the nodes",
        "KAFKA_CERTIFICATE_PASSWORD": "set KAFKA_SSL_KEYSTORE_PASSWORD, KAFKA_SSL_KEY_PASSWORD and KAFKA_SSL_TRUSTSTORE_PASSWORD",
        "KAFKA_ZOOKEEPER_PROTOCOL": "set KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE, KAFKA_ZOOKEEPER_SASL_CLIENT_JAAS_CONFIG, or neither",
        "KAFKA_ZOOKEEPER_USER": "set KAFKA_ZOOKEEPER_SASL_CLIENT_JAAS_CONFIG",
        "KAFKA_ZOOKEEPER_PASSWORD": "set KAFKA_ZOOKEEPER_SASL_CLIENT_JAAS_CONFIG",
        "KAFKA_ZOOKEEPER_TLS_KEYSTORE_FILE": "set KAFKA_ZOOKEEPER_SSL_KEYSTORE_LOCATION",
        "KAFKA_ZOOKEEPER_TLS_KEYSTORE_PASSWORD": "set KAFKA_ZOOKEEPER_SSL_KEYSTORE_PASSWORD",
        "KAFKA_ZOOKEEPER_TLS_TRUSTSTORE_FILE": "set KAFKA_ZOOKEEPER_SSL_TRUSTSTORE_LOCATION",
        "KAFKA_ZOOKEEPER_TLS_TRUSTSTORE_PASSWORD": "set KAFKA_ZOOKEEPER_SSL_TRUSTSTORE_PASSWORD",
        "KAFKA_ZOOKEEPER_TLS_TYPE": "set KAFKA_ZOOKEEPER_SSL_KEYSTORE_TYPE",
        "KAFKA_ZOOKEEPER_TLS_VERIFY_HOSTNAME": "set KAFKA_ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM",
        # Confluent and Apache
        "KAFKA_SSL_KEYSTORE_FILENAME": _SHARED_FILE.format("KAFKA_SSL_KEYSTORE_LOCATION"),
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": _SHARED_FILE.format("KAFKA_SSL_KEYSTORE_PASSWORD"),
        "KAFKA_SSL_KEY_CREDENTIALS": _SHARED_FILE.format("KAFKA_SSL_KEY_PASSWORD"),
        "KAFKA_SSL_TRUSTSTORE_FILENAME": _SHARED_FILE.format("KAFKA_SSL_TRUSTSTORE_LOCATION"),
        "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": _SHARED_FILE.format("KAFKA_SSL_TRUSTSTORE_PASSWORD"),
        "KAFKA_ZOOKEEPER_SECURE": "set KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE",
    }
)
"""The advice that a start gives for each variable of another image that it refuses."""
OF_JAVA = (
    "KAFKA_*_OPTS",
    "KAFKA_OPTS",
    "KAFKA_*LOG4J*",
    "KAFKA_JMX_*",
    "KAFKA_DEBUG",
    "KAFKA_HOME",
    "KAFKA_VERSION",
    "KAFKA_URL",
    "KAFKA_EXTRA_FLAGS",
)
"""Patterns of variables about Kafka's Java and its installation, which a node has no use for."""
