"""The audit log of a node that a test makes by hand."""

from minicontroller.admin.recording.log import AuditLog, audit_settings
from minicontroller.process.settings.node_config import NodeConfig


def audit_of(config: NodeConfig, cluster_id: str) -> AuditLog | None:
    """Open the audit log of this configuration, if it has one."""
    settings = audit_settings(config)
    return None if settings is None else AuditLog(settings, cluster_id=cluster_id, node=config.integer("broker.id"))
