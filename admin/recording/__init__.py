"""The audit log: every decision of a controller, in files that can be replayed (docs/audit.md)."""
