"""mica beside its peers: one file a work, every system in the same run on the same cores."""
