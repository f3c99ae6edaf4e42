"""The versions of TLS and the cipher suites that Kafka's keys allow, in the names of Java.

Rule: nothing is allowed that was not named, and nothing that was named is left out unseen: a name
that means nothing here is a `ValueError` with a sentence.
"""

import ssl
from collections.abc import Sequence

PROTOCOLS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
NEWEST = "TLSv1.3"
SUITES_OF_TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""The suites that OpenSSL offers in TLS 1.3. Python's ssl module cannot leave out one of them."""
EXCHANGES = ("ECDHE_ECDSA", "ECDHE_RSA", "DHE_RSA", "RSA")
OPENSSLS = (("_CBC", ""), ("AES_", "AES"), ("POLY1305_SHA256", "POLY1305"), ("CCM_8", "CCM8"), ("_", "-"))
"""How the name of a suite in Java becomes OpenSSL's, one step after the other."""


def set_versions(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Allow these versions of TLS; with no names all that are spoken here. Raises ValueError."""
    unknown = [name for name in names if name not in PROTOCOLS]
    if unknown:
        raise ValueError(f"allows {', '.join(unknown)}, and only {' and '.join(PROTOCOLS)} are spoken here")
    allowed = [PROTOCOLS[name] for name in names]
    context.minimum_version = min(allowed, default=ssl.TLSVersion.TLSv1_2)
    context.maximum_version = max(allowed, default=ssl.TLSVersion.TLSv1_3)


def set_cipher_suites(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Allow these cipher suites, of the versions that the context allows already; with no names
    OpenSSL's own. Raises ValueError.
    """
    if not names:
        return
    newest = [name for name in names if name in SUITES_OF_TLS_1_3]
    older = [openssl_name(name) for name in names if name not in SUITES_OF_TLS_1_3]
    if newest and context.maximum_version is ssl.TLSVersion.TLSv1_3 and len(set(newest)) < len(SUITES_OF_TLS_1_3):
        raise ValueError(
            f"names some cipher suites of {NEWEST} and not all, and none of them can be left out here: "
            f"name {', '.join(SUITES_OF_TLS_1_3)}, or none of them"
        )
    if not newest:
        _narrow(context, most=ssl.TLSVersion.TLSv1_2)
    if older:
        context.set_ciphers(":".join(older))
    else:
        _narrow(context, least=ssl.TLSVersion.TLSv1_3)


def _narrow(
    context: ssl.SSLContext,
    *,
    least: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> None:
    """Leave out the versions of TLS for which no suite is allowed."""
    context.minimum_version = max(context.minimum_version, least)
    context.maximum_version = min(context.maximum_version, most)
    if context.minimum_version > context.maximum_version:
        raise ValueError("names no cipher suite of the versions that ssl.enabled.protocols allows")


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2 that Java knows. Raises ValueError."""
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if exchange in EXCHANGES and name.startswith("TLS_"):
        known = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
        for java, openssl in OPENSSLS:
            known = known.replace(java, openssl)
        if known in _spoken(known):
            return known
    raise ValueError(f"names a cipher suite that is not spoken here, {name[:80]!r}")


def _spoken(names: str) -> set[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.set_ciphers(names)
    except ssl.SSLError:
        return set()
    return {cipher["name"] for cipher in context.get_ciphers()}
