"""strixd keeps one large model answering on a few AMD Strix Halo machines."""

__version__ = "0.1.0"
