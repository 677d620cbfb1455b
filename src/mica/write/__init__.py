"""Rows into a table: sources of batches, files and their facts, one commit."""
