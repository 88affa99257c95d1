"""The real adapters, one file per foreign system."""
