"""The tree of znodes: its contract, the embedded store, and ZooKeeper."""
