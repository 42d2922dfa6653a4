"""Training scripts of ten kinds, as people write them, and what `stepscope run` makes of them."""
