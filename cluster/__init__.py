"""The cluster as immutable values and pure functions of them: its image, znodes and quotas."""
