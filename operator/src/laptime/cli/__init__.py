"""The command line: kubectl laptime, and the commands of the operator image."""
