"""The active controller: its election, its writer, and the metadata that it sends to the nodes."""
