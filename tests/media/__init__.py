"""strixd-media: its kickstarts and its media."""
