"""The shell of trio around the machines of `records/`: who asks them, who waits for them."""
