"""A served game that is used, abused, killed and restarted for as long as one likes: `make soak MINUTES=30`."""
