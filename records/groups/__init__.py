"""Groups of consumers and other clients: members (the classic protocol) and committed offsets."""
