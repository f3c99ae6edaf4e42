"""Who a connection belongs to, and what its user may do."""
