"""The name of a client with a certificate, as Java prints it and as Kafka's rules map it.

The expected texts are what Java 17's X500Principal and Kafka 3.9.1's SslPrincipalMapper have said.
"""

import ssl
import warnings
from contextlib import suppress
from functools import cache

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.security.certificates import (
    MAX_RULES,
    MAX_SUBJECT_BYTES,
    MappingFault,
    PrincipalMapper,
    distinguished_name,
    name_from_der,
)

DUKE = "CN=Duke,OU=JavaSoft,O=Sun Microsystems,C=US"
NOBODY = "nobody"

NAMES = {
    "3048310b300906035504061302555331123010060355040a0c0953756e2c20496e632e310e300c060355040b0c05613d622b633115301306035504030c0c7122755c6f3c743e653b2378": 'CN=q\\"u\\\\o\\<t\\>e\\;\\#x,OU=a\\=b\\+c,O=Sun\\, Inc.,C=US',
    "3032310e300c06035504030c05206c6561643110300e06035504030c07747261696c2020310e300c06035504030c052368617368": "CN=\\#hash,CN=trail\\ \\ ,CN=\\ lead",
    "30343114301206092a864886f70d01090116056140622e63311c300806035504030c01783010060a0992268993f22c6401010c027531": "CN=x+UID=u1,1.2.840.113549.1.9.1=#16056140622e63",
    "304731133011060a0992268993f22c6401191603636f6d31173015060a0992268993f22c64011916076578616d706c653117301506035504030c0e4772c3bcc39f6520e697a5e69cac": "CN=Grüße 日本,DC=example,DC=com",
    "3062310b300906035504080c025354310a300806035504070c014c310a300806035504090c0153310b3009060355040513023132310a300806035504040c0173310a3008060355040c0c0174310a3008060355042a0c0167310a3008060355042e130171": "2.5.4.46=#130171,2.5.4.42=#0c0167,2.5.4.12=#0c0174,2.5.4.4=#0c0173,2.5.4.5=#13023132,STREET=S,L=L,ST=ST",
    "30713113301106035504031e0a0047007200fc00df00653115301306035504031c0c000000750000006e00000069310c300a06035504031403743631310c300a06035504031603696135310b3009060355040313027072310c300a06035504031203313233310c300a06035504031a03766973": "CN=#1a03766973,CN=#1203313233,CN=pr,CN=ia5,CN=t61,CN=#1c0c000000750000006e00000069,CN=\\00G\\00r\\00�\\00�\\00e",
    "304d3113301106035504030c0a6109620a6300647f652c310a300806035504030c0120310c300a06035504030c03202020310d300b06035504030c0461202062310d300b06035504030c040a20780a": "CN=\n x\n,CN=a  b,CN=\\ \\ \\ ,CN=\\ ,CN=a\tb\nc\\00d\x7fe\\,",
    "3031310b3009060355040f0c026263310a300806032a03040c0178310a300806038837010c0178310a300806035504410c0170": "2.5.4.65=#0c0170,2.999.1=#0c0178,1.2.3.4=#0c0178,2.5.4.15=#0c026263",
    "300d310b300906035504031402c3a9": "CN=é",
    "3000": "",
}
"""By the name in DER."""

RULES = {
    "DEFAULT": DUKE,
    "RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/": "Duke@JavaSoft",
    "RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L": "duke@javasoft",
    "RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U , DEFAULT": "DUKE@JAVASOFT",
    "RULE:^cn=(.*?),.*$/$1/,DEFAULT": DUKE,
    "RULE:^cn=(.*?),.*$/$1/": NOBODY,
    r"RULE:.*/x\/y/": "x/yx/y",
    "RULE:(.*)/$2/": "$2$2",
    "RULE:(.*)/$12/": f"{DUKE}22",
    "RULE:(.*)/$0/": DUKE,
    "RULE:CN=(.*?)/<$1>/": "<>Duke,OU=JavaSoft,O=Sun Microsystems,C=US",
    "RULE:[^,]*|.*/<$0>/": "<CN=Duke><>,<OU=JavaSoft><>,<O=Sun Microsystems><>,<C=US><>",
    r"RULE:.*/a\$b/": "a$ba$b",
    "DEFAULT,": DUKE,
    ",DEFAULT": DUKE,
    " DEFAULT , DEFAULT ": DUKE,
    "": NOBODY,
    "RULE:.*//": "",
    r"RULE:^CN=(\w+),.*$/$1/L,DEFAULT": "duke",
    "RULE:(a)|(.*)/[$1$2]/": f"[{DUKE}][]",
    r"RULE:CN=.*/\\x\y/": r"\xy",
    r"RULE:CN=Duke\,.*/x/": "x",
}
MISTAKES = ("RULE:.*/x/LX", "RULE:.*/x/l", "RULE:.*/x", "foo", "DEFAULTX", "RULE://x/", "RULE:.*/x/ L")
STRICTER = ("RULE:.*/$1/", "RULE:.*/a$b/", "RULE:(/x/", "RULE:(?=a)b/x/", r"RULE:(a)\1/x/", "RULE:(?<n>.*)/${n}/")
"""Rules with which Kafka starts, and fails at each connection, or which RE2 does not know."""


@pytest.mark.parametrize(("der", "name"), NAMES.items())
def test_a_subject_is_printed_as_java_does(der: str, name: str) -> None:
    """ACLs and rules were written for Java's text: its order, its escapes, its numbers."""
    assert name_from_der(bytes.fromhex(der)) == name


def test_a_subject_without_end_names_nobody() -> None:
    """TLS lets a certificate have a subject of any length."""
    with pytest.raises(ValueError, match="more than 8192 bytes names nobody"):
        name_from_der(b"\x30" + bytes(MAX_SUBJECT_BYTES))


@cache
def certificate() -> bytes:
    """A certificate of `OU=of-a-client,O=tests`, in DER."""
    issued = trustme.CA().issue_cert("client", organization_name="tests", organization_unit_name="of-a-client")
    return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("a003020102", "a003020104"),  # a version that X.509 does not have
        (f"0c0b{b'of-a-client'.hex()}", f"030b00{b'f-a-client'.hex()}"),  # a name that is a string of bits
        (f"0c0b{b'of-a-client'.hex()}", f"130bff{b'f-a-client'.hex()}"),
    ],
)
def test_what_openssl_accepts_and_nobody_can_read_names_nobody(right: str, wrong: str) -> None:
    """An authority has signed it, so the handshake succeeds."""
    assert distinguished_name(certificate()) == "OU=of-a-client,O=tests"
    with pytest.raises(ValueError, match="its certificate is not well-formed"):
        distinguished_name(certificate().replace(bytes.fromhex(right), bytes.fromhex(wrong)))


@given(place=st.integers(0, 400), new=st.binary(min_size=1, max_size=3))
@settings(max_examples=100, derandomize=True, database=None)
def test_any_certificate_names_somebody_or_nobody(place: int, new: bytes) -> None:
    """Nothing but ValueError is raised, and no library warns in the log."""
    changed = certificate()[:place] + new + certificate()[place + len(new) :]
    with warnings.catch_warnings(), suppress(ValueError):
        warnings.simplefilter("error")
        assert isinstance(distinguished_name(changed), str)


@pytest.mark.parametrize(("rules", "name"), RULES.items())
def test_rules_map_as_kafka_maps(rules: str, name: str) -> None:
    """The first rule that matches the whole subject replaces in it; without one nobody is named."""
    mapper = PrincipalMapper(rules)
    if name == NOBODY:
        with pytest.raises(ValueError, match="no rule of ssl"):
            mapper.name_of(DUKE)
    else:
        assert mapper.name_of(DUKE) == name


@pytest.mark.parametrize("rules", [*MISTAKES, *STRICTER, f"RULE:{'a' * MAX_RULES}/x/"])
def test_a_mistake_in_rules_is_found_at_the_start(rules: str) -> None:
    """What Kafka refuses at the start, and what would fail for every client."""
    with pytest.raises(MappingFault):
        PrincipalMapper(rules)
