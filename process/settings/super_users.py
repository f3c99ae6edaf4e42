"""Reads `super.users`, the principals that may do everything."""


def super_users(text: str) -> frozenset[str]:
    """Return the principals in a list such as `User:alice;User:bob`. Semicolons separate them,
    because the name of a principal that comes from a certificate has commas. Raises ValueError.
    """
    principals = [each.strip() for each in text.split(";")]
    for each in principals:
        kind, colon, name = each.partition(":")
        if each and not (kind and colon and name):
            raise ValueError(f"{each!r} is no principal, which is written User:name")
    return frozenset(filter(None, principals))
