"""The administrative client: what KIP-117 calls AdminClient."""
