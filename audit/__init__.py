"""The audit log as events and files: their format, reading, searching, verifying and replay."""
