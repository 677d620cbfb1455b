"""Pages for people who would rather look than read: plain values in, HTML out."""
