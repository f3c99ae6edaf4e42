"""The cluster's metadata as immutable values, and pure functions of them."""
