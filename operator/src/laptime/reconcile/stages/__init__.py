"""The stages of a run, in their order; each one returns a decision until it is done."""
