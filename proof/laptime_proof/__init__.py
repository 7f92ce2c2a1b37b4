"""Runs the checks of the project side by side, and keeps a journal of how they went."""
