"""What every Python server of the catalogue does alike: settings, serving, connections."""
