"""How Laptime's images are built, cached and pushed; `images/build.py` is the command."""
