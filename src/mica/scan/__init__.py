"""Scans: sources of files, planned once, run by either engine, explained."""
