"""Tables created, cloned, altered, optimized, repaired, vacuumed, restored."""
