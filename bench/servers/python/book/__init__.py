"""Minimal servers in Python, each as the documentation of its libraries shows it."""
