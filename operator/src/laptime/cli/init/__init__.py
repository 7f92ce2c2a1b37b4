"""What `laptime init` reads, each kind in a place of its own, and what it makes of them."""
