"""Raw frames by a foreign codec: kafka-python writes and reads them, so that no error of ours can
hide in both ends.

A body is a plain dict of Kafka's field names in snake_case, a struct in it a dict too; what is not
given has the schema's default. kafka-python knows every version back to 0, also those it would
never speak by itself.
"""

import socket
import ssl
import struct
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateAclsRequest,
    CreateAclsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafka.protocol.consumer import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from tests.support.lacking_messages import LACKING_MESSAGES
from tests.support.token_messages import TOKEN_MESSAGES

Body = dict[str, Any]

MESSAGES: dict[str, tuple[Any, Any]] = {
    "AddOffsetsToTxn": (AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
    "AddPartitionsToTxn": (AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
    "AlterClientQuotas": (AlterClientQuotasRequest, AlterClientQuotasResponse),
    "AlterConfigs": (AlterConfigsRequest, AlterConfigsResponse),
    "AlterPartitionReassignments": (AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse),
    "AlterUserScramCredentials": (AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse),
    "ApiVersions": (ApiVersionsRequest, ApiVersionsResponse),
    "CreateAcls": (CreateAclsRequest, CreateAclsResponse),
    "CreatePartitions": (CreatePartitionsRequest, CreatePartitionsResponse),
    "CreateTopics": (CreateTopicsRequest, CreateTopicsResponse),
    "DeleteAcls": (DeleteAclsRequest, DeleteAclsResponse),
    "DeleteGroups": (DeleteGroupsRequest, DeleteGroupsResponse),
    "DeleteRecords": (DeleteRecordsRequest, DeleteRecordsResponse),
    "DeleteTopics": (DeleteTopicsRequest, DeleteTopicsResponse),
    "DescribeAcls": (DescribeAclsRequest, DescribeAclsResponse),
    "DescribeClientQuotas": (DescribeClientQuotasRequest, DescribeClientQuotasResponse),
    "DescribeCluster": (DescribeClusterRequest, DescribeClusterResponse),
    "DescribeConfigs": (DescribeConfigsRequest, DescribeConfigsResponse),
    "DescribeGroups": (DescribeGroupsRequest, DescribeGroupsResponse),
    "DescribeProducers": (DescribeProducersRequest, DescribeProducersResponse),
    "DescribeTopicPartitions": (DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
    "DescribeTransactions": (DescribeTransactionsRequest, DescribeTransactionsResponse),
    "DescribeUserScramCredentials": (DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse),
    "ElectLeaders": (ElectLeadersRequest, ElectLeadersResponse),
    "EndTxn": (EndTxnRequest, EndTxnResponse),
    "FindCoordinator": (FindCoordinatorRequest, FindCoordinatorResponse),
    "Heartbeat": (HeartbeatRequest, HeartbeatResponse),
    "IncrementalAlterConfigs": (IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
    "InitProducerId": (InitProducerIdRequest, InitProducerIdResponse),
    "JoinGroup": (JoinGroupRequest, JoinGroupResponse),
    "LeaveGroup": (LeaveGroupRequest, LeaveGroupResponse),
    "ListGroups": (ListGroupsRequest, ListGroupsResponse),
    "AlterReplicaLogDirs": (AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse),
    "DescribeLogDirs": (DescribeLogDirsRequest, DescribeLogDirsResponse),
    "ListOffsets": (ListOffsetsRequest, ListOffsetsResponse),
    "ListPartitionReassignments": (ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse),
    "ListTransactions": (ListTransactionsRequest, ListTransactionsResponse),
    "Metadata": (MetadataRequest, MetadataResponse),
    "OffsetCommit": (OffsetCommitRequest, OffsetCommitResponse),
    "OffsetDelete": (OffsetDeleteRequest, OffsetDeleteResponse),
    "OffsetFetch": (OffsetFetchRequest, OffsetFetchResponse),
    "SaslAuthenticate": (SaslAuthenticateRequest, SaslAuthenticateResponse),
    "SaslHandshake": (SaslHandshakeRequest, SaslHandshakeResponse),
    "SyncGroup": (SyncGroupRequest, SyncGroupResponse),
    "TxnOffsetCommit": (TxnOffsetCommitRequest, TxnOffsetCommitResponse),
    "UpdateFeatures": (UpdateFeaturesRequest, UpdateFeaturesResponse),
    "WriteTxnMarkers": (WriteTxnMarkersRequest, WriteTxnMarkersResponse),
    **LACKING_MESSAGES,
    **TOKEN_MESSAGES,
}

Login = tuple[str, str]
"""The name and the password of a user."""
PLAIN = b"PLAIN"
ANSWER_TIMEOUT_SECONDS = 60.0
UNSUPPORTED_VERSION = 35


class ConnectionEndedError(Exception):
    """The server closed the connection instead of answering."""


def request_frame(
    api: str, version: int, body: Mapping[str, Any], *, correlation_id: int = 1, client_id: str | None = "wire"
) -> bytes:
    """A whole request, with its size in front."""
    request_class = MESSAGES[api][0]
    message = build(request_class, request_class._struct, body, version)
    message.with_header(correlation_id, client_id)
    frame: bytes = message.encode(version=version, header=True, framed=True)
    return frame


def response_frame(api: str, version: int, body: Mapping[str, Any], *, header: bytes) -> bytes:
    """An answer without its size, behind a header that is given."""
    response_class = MESSAGES[api][1]
    encoded: bytes = build(response_class, response_class._struct, body, version).encode(version=version)
    return header + encoded


def read_answer(api: str, version: int, frame: bytes) -> Body:
    """The body of an answer (a frame without its size) as plain dicts; only the fields that this
    version has.
    """
    response_class = MESSAGES[api][1]
    if api == "ApiVersions":
        return read_api_versions(version, frame)
    return plain(response_class.decode(frame, version=version, header=True), response_class._struct, version)


def read_api_versions(version: int, frame: bytes) -> Body:
    """KIP-511: the header is always the oldest, and an answer that refuses the version is in
    version 0. (kafka-python's own reader takes every error for that refusal.)
    """
    (code,) = struct.unpack_from(">h", frame, 4)
    version = 0 if code == UNSUPPORTED_VERSION else version
    message = super(ApiVersionsResponse, ApiVersionsResponse).decode(frame[4:], version=version)
    return plain(message, ApiVersionsResponse._struct, version)


def build(cls: Any, schema: Any, body: Mapping[str, Any], version: int) -> Any:
    """An instance of a kafka-python class from plain dicts."""
    fields = schema.fields
    unknown = set(body) - set(fields)
    if unknown:
        raise KeyError(f"{schema.name} has no {sorted(unknown)}, only {sorted(fields)}")
    values = {}
    for name, value in body.items():
        field = fields[name]
        if field.is_struct_array() and value is not None:
            values[name] = [build(field.data_class, field, element, version) for element in value]
        elif field.is_struct() and value is not None:
            values[name] = build(field.data_class, field, value, version)
        else:
            values[name] = value
    return cls(version=version, **values)


def plain(message: Any, schema: Any, version: int) -> Body:
    """The other way round: every field of the version, structs as dicts, bytes and ids as hex."""
    body: Body = {}
    for name, field in schema.fields.items():
        if not field.for_version_q(version):
            continue
        value = getattr(message, name)
        if value is None:
            body[name] = None
        elif field.is_struct_array():
            body[name] = [plain(element, field, version) for element in value]
        elif field.is_struct():
            body[name] = plain(value, field, version)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            body[name] = bytes(value).hex()
        elif isinstance(value, (bool, int, float, str, list)):
            body[name] = value
        elif isinstance(value, (set, frozenset)):
            body[name] = sorted(value)  # authorized operations
        else:
            body[name] = str(value)
    return body


class Wire:
    """One connection on which frames are written and read as they are."""

    def __init__(
        self,
        address: str,
        *,
        login: Login | None = None,
        timeout: float = ANSWER_TIMEOUT_SECONDS,
        source: str = "",
        ca: Path | None = None,
    ) -> None:
        """Connect, from an address of this machine if one is given and over TLS if an authority is,
        and log in by SASL PLAIN with this user and password.
        """
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout, (source, 0) if source else None)
        if ca is not None:
            self._socket = ssl.create_default_context(cafile=ca).wrap_socket(self._socket, server_hostname=host)
        self._correlation_id = 0
        if login is not None:
            try:
                self._log_in("\0".join(("", *login)).encode())
            except BaseException:
                self.close()
                raise

    def be_patient_for(self, seconds: float) -> None:
        """Wait for so long for each answer from now on."""
        self._socket.settimeout(seconds)

    def _log_in(self, token: bytes) -> None:
        handshake = struct.pack(">hhihh", 17, 1, 1, -1, len(PLAIN)) + PLAIN
        authenticate = struct.pack(">hhihi", 36, 1, 2, -1, len(token)) + token
        for request in (handshake, authenticate):
            answer = self.exchange(struct.pack(">i", len(request)) + request)
            (code,) = struct.unpack_from(">h", answer, 4)
            if code:
                raise ConnectionEndedError(f"the login was answered with error {code}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        """Close the connection so that the other end learns at once that nobody reads any more."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def ask(self, api: str, version: int, body: Mapping[str, Any] | None = None) -> Body:
        """Send one request and read its answer."""
        return read_answer(api, version, self.exchange(self.frame(api, version, body or {})))

    def frame(self, api: str, version: int, body: Mapping[str, Any]) -> bytes:
        self._correlation_id += 1
        return request_frame(api, version, body, correlation_id=self._correlation_id)

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame (with its size) and return the answering frame (without)."""
        self.send(frame)
        return self.receive()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        chunks = []
        while size:
            try:
                chunk = self._socket.recv(size)
            except ConnectionResetError as error:
                raise ConnectionEndedError from error
            if not chunk:
                raise ConnectionEndedError
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)
