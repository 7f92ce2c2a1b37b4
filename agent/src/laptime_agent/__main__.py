"""`python -m laptime_agent`."""

from laptime_agent.main import main

main()
