"""The places of the files that the pipeline reads and writes: a local folder, or an address of an
object store.

Rule: everything asks a place for its file system and uses paths relative to it, so no other module
knows what kind of place it is. Credentials come from the environment, under the names that each
store's own tools use, and never stand in an address. No request is repeated without end.
"""

import io
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+", re.ASCII)
SCHEMES = {"s3": "s3", "s3a": "s3", "abfs": "abfss", "abfss": "abfss", "gs": "gs", "hdfs": "hdfs"}
"""The schemes that are served, each with its form that all libraries know."""
ENDPOINT = "AWS_ENDPOINT_URL"
ENDPOINT_FORM = re.compile(r"https?://[^\s/]", re.ASCII | re.IGNORECASE)
AMBIGUOUS = re.compile(r"[\x00-\x20\x7f%?#\\]|//|/\.{1,2}(/|$)")
"""The parts of an address that some libraries take literally, and others do not."""

ATTEMPTS = 6
"""How often a request is sent; the pauses, each twice the one before, make some 15 seconds."""
CONNECT_SECONDS, ANSWER_SECONDS, RETRY_SECONDS = 5, 30, 60
READ_AHEAD_BYTES = 8 << 20
"""How much of a file is asked for at once, since each request takes tens of milliseconds."""


class LocationError(ValueError):
    """A text names no place that can be used; the message is a sentence that says why."""


@dataclass(frozen=True, order=True)
class Location:
    """A folder: an absolute path on this machine, or an address such as `s3://bucket/folder`."""

    uri: str

    @classmethod
    def parse(cls, text: str) -> "Location":
        """Read a path, or an address. Raises LocationError."""
        if not text.strip():
            raise LocationError("The name of the folder is empty.")
        name, is_address, rest = text.partition(":/")
        if not is_address or not SCHEME.fullmatch(name):
            return cls.local(Path(text))
        scheme = name.lower()
        if scheme == "file":
            return cls.local(Path(unquote(urlsplit(text).path)))
        if scheme not in SCHEMES:
            raise LocationError(
                f"{text}: addresses begin with {', '.join(f'{known}://' for known in SCHEMES)}, and paths with no scheme."
            )
        rest = rest.strip("/")
        if "@" in rest.partition("/")[0] and SCHEMES[scheme] != "abfss":
            raise LocationError(f"An address of {scheme}:// must not contain credentials: set them in the environment.")
        if not rest:
            raise LocationError(f"{text} names no bucket.")
        if AMBIGUOUS.search(rest):
            raise LocationError(
                f"{text}: an address has no spaces, none of % ? # \\, and no parts that are empty, . or .. between its slashes."
            )
        endpoint = os.environ.get(ENDPOINT, "")
        if SCHEMES[scheme] == "s3" and endpoint and not ENDPOINT_FORM.match(endpoint):
            raise LocationError(f"{ENDPOINT} is no address of a store: write it as https://HOST or http://HOST:PORT.")
        return cls(f"{SCHEMES[scheme]}://{rest}")

    @classmethod
    def local(cls, path: Path) -> "Location":
        """Return the place of a local folder, links resolved. Raises LocationError."""
        try:
            uri = str(path.resolve())
            uri.encode()
        except UnicodeEncodeError:
            raise LocationError(f"The name of {str(path)!r} is not UTF-8: give it another one.") from None
        except (OSError, RuntimeError, ValueError) as error:  # a circle of links, a byte that no name has
            raise LocationError(f"{str(path)!r} is no path: {error}.") from None
        return cls(uri)

    @property
    def is_local(self) -> bool:
        return self.uri.startswith("/")

    @property
    def path(self) -> Path:
        assert self.is_local
        return Path(self.uri)

    def child(self, name: str) -> "Location":
        return Location(f"{self.uri.rstrip('/')}/{name}")

    def filesystem(self) -> fs.FileSystem:
        """Return the file system whose root is this place. Raises OSError if the store's library
        cannot be loaded.
        """
        return _filesystem(self.uri)

    def storage_options(self) -> dict[str, str]:
        """Return what delta-rs is told about the store besides the environment."""
        return {} if self.is_local else dict(STORAGE_OPTIONS)

    def __str__(self) -> str:
        return self.uri


STORAGE_OPTIONS = {
    "max_retries": str(ATTEMPTS - 1),
    "retry_timeout": f"{RETRY_SECONDS}s",
    "backoff_config.init_backoff": "500ms",
    "connect_timeout": f"{CONNECT_SECONDS}s",
    "timeout": f"{ANSWER_SECONDS}s",
}


@dataclass(frozen=True)
class File:
    """A file at a place. It has a name and is opened, as a path is."""

    folder: Location
    name: str

    @classmethod
    def parse(cls, uri: str) -> "File":
        """Return the file whose path or address this is, as `str` of a file tells it."""
        folder, _, name = uri.rpartition("/")
        return cls(Location(folder or "/"), name)

    def open(self, _mode: Literal["rb"] = "rb", /) -> io.BufferedReader:
        """Open the file for reading. Raises OSError."""
        file = self.folder.filesystem().open_input_file(self.name)
        ahead = io.BufferedReader(file, max(1, min(READ_AHEAD_BYTES, file.size())))
        return io.BufferedReader(ahead)

    def exists(self) -> bool:
        return bool(self.folder.filesystem().get_file_info(self.name).is_file)

    def __str__(self) -> str:
        return self.folder.child(self.name).uri


def output_stream(location: Location, path: str) -> pa.NativeFile:
    """Open a new file for writing, and make the folders above it if it is local. Raises OSError."""
    if location.is_local:
        (location.path / path).parent.mkdir(parents=True, exist_ok=True)
    return location.filesystem().open_output_stream(path, compression=None)


# ------------------------------------------------------------------ the libraries


@cache
def _filesystem(uri: str) -> fs.FileSystem:
    location = Location(uri)
    if location.is_local:
        return fs.SubTreeFileSystem(uri, fs.LocalFileSystem())
    scheme, _, path = uri.partition("://")
    if scheme != "s3":
        return fs.PyFileSystem(_Handler(uri, location.storage_options()))
    return fs.SubTreeFileSystem(path, _s3())


@cache
def _s3() -> fs.S3FileSystem:
    """Make Arrow's own client of S3, which reads several columns of a file at once. Unlike delta-rs
    it has to be told what stands in the environment.
    """
    return fs.S3FileSystem(
        endpoint_override=os.environ.get(ENDPOINT),
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
        anonymous=_is_set("AWS_SKIP_SIGNATURE"),
        force_virtual_addressing=_is_set("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"),
        allow_delayed_open=True,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=ANSWER_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in {"true", "1", "yes", "on"}


class _Handler(DeltaStorageHandler):
    """The client of delta-rs, whose streams take bytes only where Arrow writes buffers."""

    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
        return pa.PythonFile(_Output(self._handler.open_output_stream(path, metadata)), mode="w")


class _Output:
    """A stream of delta-rs that takes buffers, too."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return int(self._stream.write(bytes(data)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


# ------------------------------------------------------------------ what they say when they fail

COLOURS = re.compile(r"\x1b\[[0-9;]{0,16}+m")
MADE_UP = re.compile(r" ?\(Request ID: [^)]{0,200}+\)|: ParsedLogPath \{.*+")
SECRET = re.compile(r"(?<=://)[^/@\s:]{0,200}+:[^/@\s]{0,200}+@|\?\S*+")
"""The parts of an address that may hold a password or a signature."""
TOLD_LINES = 3
CREDENTIALS = {
    "microsoftazure": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS",
    "hdfs": "HADOOP_USER_NAME",
    "": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}
"""The variables that hold a store's credentials, by what the library calls the store."""
ADVICE = {
    "there is no such bucket: make it, or correct the address": "nosuchbucket containernotfound specifiedbucketdoesnotexist",
    "the store does not accept the credentials: check {credentials} in the environment": (
        "invalidaccesskeyid signaturedoesnotmatch invalidtoken expiredtoken invalidsecurity authenticationfailed unauthenticated "
        "invalidauthenticationinfo invalidgrant 401unauthorized readingpemfile accesscontrolexception"
    ),
    "the address has to name the account: abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER": "accountmustbespecified",
    "credentials are missing: set {credentials} in the environment": "169254169254 nocredentials loadingcredentials imdssession",
    "permission denied: the credentials need the rights to list and read there, and for tables to write and delete": (
        "accessdenied 403forbidden necessaryprivileges authorizationfailure permissiondenied"
    ),
    "too many files are open: allow more by ulimit -n": "toomanyopenfiles",
    "plain http is not allowed: to use it, set AWS_ALLOW_HTTP=true": "urlschemeisnotallowed",
    "the store fails or is busy, also after retries: try it later": (
        "slowdown serviceunavailable 503service internalerror internalfailure 500internal 429too toomanyrequests serverbusy"
    ),
    "the store cannot be reached: check the network, and the store's address in the environment, such as AWS_ENDPOINT_URL": (
        "networkconnection errorsendingrequest tcpconnect dnserror requesttimeout connectionrefused connectionreset timedout curlcode"
    ),
}
"""The advice for errors, with words by which they are recognized, in letters and digits only."""


def reason(error: BaseException) -> str:
    """Return what went wrong in one phrase, without a full stop and without secrets. It is also for
    errors of delta-rs, which may tell of every attempt.
    """
    if isinstance(error, OSError) and error.strerror and error.errno:
        return os.strerror(error.errno)
    lines = [line.strip(" \t↳") for line in _said(error).splitlines()]
    told = ": ".join([line for line in lines if line][:TOLD_LINES]) or type(error).__name__
    return advice(error) or SECRET.sub("", MADE_UP.sub("", told)).rstrip(".")


def advice(error: BaseException) -> str | None:
    """Return what to do about an error of a system or a store that keeps somebody from what may be
    whole; None for another one.
    """
    letters = "".join(filter(str.isalnum, _said(error))).lower()
    for told, signs in ADVICE.items():
        if any(sign in letters for sign in signs.split()):
            store = next(name for name in CREDENTIALS if name in letters)
            return told.format(credentials=CREDENTIALS[store])
    return None


def _said(error: BaseException) -> str:
    return COLOURS.sub("", (isinstance(error, OSError) and error.strerror) or str(error))
