"""The parts of every node, whether it is the active controller or not."""
