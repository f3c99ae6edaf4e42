"""What people see of a running node: its log, its metrics, and how secrets are kept out of both."""
