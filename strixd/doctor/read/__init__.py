"""Each reader brings one fact, or raises OSError, ValueError or a StrixdError: then it is unknown."""
