"""Maintenance of tables and files: convert, repair, restats, restore, vacuum."""
