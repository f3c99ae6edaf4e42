"""Who a client of the gateway is, and who the cluster takes it for."""
