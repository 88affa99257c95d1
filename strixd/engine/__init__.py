"""Observe, plan, apply, verify, undo: the one writer, and what it tells of itself."""
