"""One fleet for several cases: nodes that are bought now, and hold in every scenario or in a share of them."""
