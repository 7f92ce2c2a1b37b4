"""Whether a server gives the answers that its scenario promises.

`laptime verify` runs once for each server of every run, so it loads no more than it needs: the
modules are imported one by one, and this one imports nothing.
"""
