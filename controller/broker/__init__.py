"""What every node does, whether it is the active controller or not."""
