"""Observe the cluster, decide the next actions (pure), apply them."""
