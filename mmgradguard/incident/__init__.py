"""What a run leaves on disk: steps, journal, incidents and their bundles."""
