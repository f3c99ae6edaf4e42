"""Texts of strangers and of users: messages of SASL, lines of an audit log, properties, JAAS, lists
of listeners.

Each parser has one error of its own for what it cannot read, or none at all.
"""

from collections.abc import Callable

from minicontroller.audit import event
from minicontroller.audit.lines import decode_line
from minicontroller.cluster.errors import Refusal
from minicontroller.gateway.identity.sight import bearer_name, plain_name
from minicontroller.process.settings.jaas import JaasError, parse_jaas, parse_jaas_file
from minicontroller.process.settings.listeners import ListenerFault, parse_counts, parse_endpoints, parse_protocol_map
from minicontroller.process.settings.properties import PropertiesError, parse_properties
from minicontroller.security.bearer_message import read_bearer_message
from minicontroller.security.certificates import PrincipalMapper
from minicontroller.security.principal import principal_from_envelope, principal_from_text
from minicontroller.security.scram import ScramError, _attributes
from minicontroller.security.scram_credentials import parse_credential
from minicontroller.security.scram_server import read_client_final, read_client_first
from tests.audit.logs import a_log

Readers = tuple[Callable[[bytes], object], ...]


def of_bytes(parse: Callable[[bytes], object], *errors: type[Exception]) -> Callable[[bytes], object]:
    """Return a reader whose parser has these errors."""

    def read(data: bytes) -> None:
        try:
            parse(data)
        except errors:
            return

    return read


def of_text(parse: Callable[[str], object], *errors: type[Exception]) -> Callable[[bytes], object]:
    """Return a reader of bytes that are a text, whose parser has these errors."""
    return of_bytes(lambda data: parse(data.decode("utf-8", "replace")), *errors)


SASL: Readers = (
    read_client_first,
    read_client_final,
    read_bearer_message,
    of_text(_attributes, ScramError),
    of_text(parse_credential, ValueError),
    of_text(principal_from_text, ValueError, Refusal),
    of_bytes(principal_from_envelope, ValueError),
    of_text(lambda text: PrincipalMapper(text).name_of("CN=a,OU=b"), ValueError),
    of_text(PrincipalMapper("RULE:^CN=([^,]*),.*$/$1/L,DEFAULT").name_of, ValueError),
    plain_name,
    lambda data: bearer_name(data, "sub"),
)
FILES: Readers = (
    of_text(parse_properties, PropertiesError),
    of_text(parse_jaas, JaasError),
    of_text(parse_jaas_file, JaasError),
    of_text(lambda text: parse_endpoints("listeners", text), ListenerFault),
    of_text(parse_protocol_map, ListenerFault),
    of_text(lambda text: parse_counts("k", text), ListenerFault),
)


def _by_first_byte(readers: Readers, data: bytes) -> None:
    if data and data[0] < len(readers):
        readers[data[0]](data[1:])


def read_sasl(data: bytes) -> None:
    """A message of a login is one or none, and a text about names is one or a fault."""
    _by_first_byte(SASL, data)


def read_file(data: bytes) -> None:
    """A text of configuration is one, or its fault is said."""
    _by_first_byte(FILES, data)


def read_audit_line(data: bytes) -> None:
    """A line is an event, which is the same after it was written, or unreadable."""
    try:
        found = decode_line(data)
    except event.UnreadableLineError:
        return
    assert event.encode(decode_line(event.encode(found).rstrip(b"\n"))) == event.encode(found)


def audit_seeds() -> list[bytes]:
    """Return a line of each kind of event."""
    return [event.encode(each).rstrip(b"\n") for each in a_log(8)]


def sasl_seeds() -> list[bytes]:
    """Return a good message of each kind."""
    written = (
        b"n,a=b,n=user=2Ca,r=abc,tokenauth=true",
        b"c=biws,r=abc,p=QUJD",
        b"n,a=b,\x01auth=Bearer a.b.c\x01k=v\x01\x01",
        b"r=abc,s=QUJD,i=4096",
        b"salt=QUJD,stored_key=QUJD,server_key=QUJD,iterations=4096",
        b"User:a",
        b"\x00\x00\x05User\x02a\x00\x00",
        b"RULE:^CN=(.*?),OU=.*$/$1/L,DEFAULT",
        b"CN=a,OU=b",
        b"\0alice\0password",
        b"n,,\x01auth=Bearer e30.eyJzdWIiOiJhIn0.e30\x01\x01",
    )
    return [bytes([number]) + each for number, each in enumerate(written)]


def file_seeds() -> list[bytes]:
    """Return a good text of each kind."""
    written = (
        b"# a\nbroker.id = 1\nlisteners:\\\n  A\\u0041\n",
        b'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password=\'b\' user_c="d";',
        b'Server { // a\n org.apache.Digest required\n user="b"; /* c */ };',
        b"PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9093",
        b"A:PLAINTEXT,B:SASL_SSL",
        b"127.0.0.1:5,h:6",
    )
    return [bytes([number]) + each for number, each in enumerate(written)]
