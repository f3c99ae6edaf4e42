"""The active controller: its election, its one writer, and what it tells the nodes."""
