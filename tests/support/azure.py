"""A store of blobs as Azure has it, a process of its own: Azurite, Microsoft's emulator."""

import base64
import hashlib
import hmac
import http.client
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

from tests.support.ports import free_port
from tests.support.programs import azurite
from tests.support.waiting import until

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Every Azurite has this account, and this key is in its documentation."""
API_VERSION = "2021-08-06"


@contextmanager
def running_azure(folder: Path, container: str) -> Iterator[Mapping[str, str]]:
    """Start it with a container, and give the variables by which its clients find it."""
    port = free_port()
    command = [str(azurite()), "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--blobPort", str(port)]
    with (folder / "azurite.log").open("wb") as log:
        process = subprocess.Popen([*command, "--location", str(folder / "blobs")], stdout=log, stderr=log)
    try:
        until(lambda: process.poll() is not None or _answers(port))
        _make(port, container)
        yield {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
        }
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def _make(port: int, container: str) -> None:
    """Make a container, by a request that is signed with the key."""
    path = f"/{ACCOUNT}/{container}"
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": API_VERSION}
    named = "".join(f"{name}:{value}\n" for name, value in headers.items())
    signed = "PUT" + 12 * "\n" + f"{named}/{ACCOUNT}{path}\nrestype:container"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()).decode()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    own = {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    connection.request("PUT", f"{path}?restype=container", headers={**headers, **own})
    response = connection.getresponse()
    assert response.status == http.client.CREATED, response.read()
    connection.close()
