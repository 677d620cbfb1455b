"""Maintenance of tables and files: convert, fsck, repair, restats, restore, vacuum."""
