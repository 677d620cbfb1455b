"""Files into shape: rewritten, laid out anew, their statistics made again."""
