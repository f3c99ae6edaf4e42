"""Addresses of places, and what is told when a store fails."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minicontroller.pipeline.delta import Tables
from minicontroller.pipeline.ingest.files import listing
from minicontroller.pipeline.location import SCHEMES, File, Location, LocationError, output_stream, reason
from minicontroller.pipeline.schemas import Table
from tests.pipeline.stores.buckets import Bucket

ODD = "ä+b=c&d~'e!(f)@g,h;i:j*k$l"
"""A folder's name of the characters that mean something in some addresses, and are served."""

texts = st.one_of(
    st.text(),
    st.builds(
        "{}:{}{}".format, st.sampled_from([*SCHEMES, "file", "ftp", "S3"]), st.sampled_from(["/", "//", ""]), st.text()
    ),
)


@given(texts)
@example("s3:///bucket//x")
@example("abfss://container@account.dfs.core.windows.net/x")
def test_any_text(text: str) -> None:
    """Any text is a place, whose own text names the same place, or is refused with a sentence."""
    try:
        place = Location.parse(text)
    except LocationError as error:
        refusal = str(error)
    else:
        refusal = ""
        assert Location.parse(str(place)) == place
        assert place.is_local == Path(str(place)).is_absolute()
    assert refusal.endswith(".") == bool(refusal)


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text(text: str) -> None:
    """A variable of the shell that is not set names no folder, and not the present one."""
    with pytest.raises(LocationError, match="name of the folder is empty"):
        Location.parse(text)


def test_an_endpoint_that_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before a library is asked, which would panic."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nonsense")
    with pytest.raises(LocationError, match="AWS_ENDPOINT_URL is no address of a store"):
        Location.parse("s3://bucket/folder")


def test_both_libraries_mean_the_same_place(bucket: Bucket) -> None:
    """What Arrow writes and what delta-rs writes under an odd address lies in the same folder."""
    place = Location.parse(f"{bucket.audit}/{ODD}")
    with output_stream(place, "a.ndjson") as stream:
        stream.write(b"")
    tables = Tables(place)
    tables.commit(tables.snapshot(Table.QUARANTINE), 1)
    below = {info.path for info in place.filesystem().get_file_info(["a.ndjson", "quarantine/_delta_log"]) if info.type}
    assert below == {"a.ndjson", "quarantine/_delta_log"}
    assert [str(found.file) for found in listing([place]).values()] == [f"{place}/a.ndjson"]
    assert File.parse(f"{place}/a.ndjson") == File(place, "a.ndjson")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Generic S3 error\n \x1b[31m↳\x1b[0m Error performing GET https://u:pw@h/b?X-Amz-Signature=abc in 2ms", "S3"),
        ("When listing objects: AWS Error UNKNOWN (HTTP 418) (Request ID: QAw6YUrl): teapot", "teapot"),
        ("Generic MicrosoftAzure error\n Account must be specified", "abfss://CONTAINER@ACCOUNT"),
        ("Generic GCS error\n Error reading pem file\n no items found", "check GOOGLE_APPLICATION_CREDENTIALS in"),
        ("Generic GCS error\n GET http://169.254.169.254/token", "missing: set GOOGLE_APPLICATION_CREDENTIALS in"),
        ("loading credentials: failed to load IMDS session token", "missing: set AWS_ACCESS_KEY_ID and"),
        ("Generic S3 error\n URL scheme is not allowed", "to use it, set AWS_ALLOW_HTTP=true"),
        ("Object at location x\n 503 Service Unavailable", "the store fails or is busy"),
        ("", "OSError"),
    ],
    ids=["secrets", "unknown", "account", "key file", "missing", "no machine's role", "plain http", "busy", "nothing"],
)
def test_what_libraries_say(said: str, told: str) -> None:
    """What a library says is told in one line, without colours, secrets and numbers of requests."""
    line = reason(OSError(said))
    assert told in line
    assert not any(part in line for part in ("\n", "\x1b", "pw@", "Signature", "Request ID"))
    assert not line.endswith(".")
    assert reason(OSError(0, line, "s3://bucket")) == line
