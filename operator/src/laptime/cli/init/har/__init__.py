"""A recording of a browser (HAR 1.2) as a scenario and a run."""
