"""The Delta protocol: replay, features, conflict rules and checkpoints as pure functions; only `storage` does I/O."""
