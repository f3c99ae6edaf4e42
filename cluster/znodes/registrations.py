"""The registration of a broker in `/brokers/ids`: its endpoints, its rack and its features.

Rule: a registration that could not be sent to other brokers raises `MalformedZnodeError`.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ...policies.configs.values import MAX_PORT
from ..entities import SECURITY_PROTOCOLS, Broker, Endpoint
from .content import MAX_INT, MAX_TEXT, Int, MalformedZnodeError, Text, read, write

MAX_LISTENERS = 100
BROKER_ID = re.compile(r"0|[1-9][0-9]{0,9}+")
LISTENER = re.compile(r"[^:/]++")
HOST = re.compile(r"[0-9A-Za-z\-%._:]*+")
PORT = re.compile(r"[0-9]{1,5}+")


class RegistrationZnode(Struct, kw_only=True):
    features: dict[str, Any] = {}
    listener_security_protocol_map: dict[str, str] = {}
    endpoints: Annotated[list[str], Meta(max_length=MAX_LISTENERS)] | None = None
    rack: Text | UnsetType | None = UNSET
    jmx_port: Int = -1
    port: Int = -1
    host: str | None = None
    version: Int
    timestamp: str | int = ""
    minicontroller: Int | UnsetType = UNSET
    """The version of the proof between minicontroller nodes; unset for Kafka's brokers, which
    ignore unknown keys.
    """
    holds_replicas: bool | UnsetType = UNSET
    """False for a controller that is no broker otherwise; else unset."""


REGISTRATION_READER = msgspec.json.Decoder(RegistrationZnode)


def encode_broker(broker: Broker, timestamp_ms: int) -> bytes:
    """Encode a registration in version 5. Its host and port, which the oldest clients read, are
    those of the first PLAINTEXT listener.
    """
    plain = next((each for each in broker.endpoints if each.security_protocol == "PLAINTEXT"), None)
    return write(
        RegistrationZnode(
            listener_security_protocol_map={each.listener: each.security_protocol for each in broker.endpoints},
            endpoints=[_endpoint_text(each) for each in broker.endpoints],
            rack=UNSET if broker.rack is None else broker.rack,
            port=plain.port if plain else -1,
            host=plain.host if plain else None,
            version=5,
            timestamp=str(timestamp_ms),
            minicontroller=1 if broker.proves_itself else UNSET,
            holds_replicas=UNSET if broker.holds_replicas else False,
        )
    )


def _endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def decode_broker_id(name: str) -> int:
    if not BROKER_ID.fullmatch(name) or int(name) > MAX_INT:
        raise MalformedZnodeError(f"{name!r:.80} is no broker's id")
    return int(name)


def decode_broker(broker_id: int, data: bytes | None, epoch: int) -> Broker:
    """Decode a registration of versions 1 to 5; `epoch` is the transaction that
    created the znode.
    """
    registration = read("the registration", data, REGISTRATION_READER)
    if registration.version < 1:
        raise MalformedZnodeError(f"the registration has version {registration.version}, which is unknown")
    if registration.version == 1 or registration.endpoints is None:
        endpoints = [_endpoint("PLAINTEXT", registration.host or "", registration.port, "PLAINTEXT")]
    else:
        protocols = registration.listener_security_protocol_map
        endpoints = [decode_endpoint(text, protocols) for text in registration.endpoints]
    return Broker(
        broker_id,
        tuple(endpoints),
        registration.rack or None,
        epoch,
        holds_replicas=registration.holds_replicas is not False,
        proves_itself=registration.minicontroller is not UNSET,
    )


def decode_endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (LISTENER.fullmatch(listener) and PORT.fullmatch(port)):
        raise MalformedZnodeError(f"the registration has {text!r:.80}, which is no endpoint")
    # Before version 4 a listener was named after its protocol.
    return _endpoint(listener, host, int(port), protocols.get(listener, listener))


def _endpoint(listener: str, host: str, port: int, protocol: str) -> Endpoint:
    if protocol not in SECURITY_PROTOCOLS:
        raise MalformedZnodeError(f"the registration has the security protocol {protocol!r:.80}, which is unknown")
    if not HOST.fullmatch(host):
        raise MalformedZnodeError(f"the registration has the host {host!r:.80}, which is none")
    if not 0 <= port <= MAX_PORT:
        raise MalformedZnodeError(f"the registration has the port {port}, which does not exist")
    if max(len(listener), len(host)) > MAX_TEXT:
        raise MalformedZnodeError(f"the registration has a listener or a host of more than {MAX_TEXT} characters")
    return Endpoint(listener, host, port, protocol)
