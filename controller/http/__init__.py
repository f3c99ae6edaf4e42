"""The metrics of nodes, and the data of the page that shows them."""
