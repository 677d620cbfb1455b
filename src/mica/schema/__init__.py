"""Schemas: Delta's types, and their spellings as DDL, JSON and Arrow."""
