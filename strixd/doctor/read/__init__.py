"""Each reader brings one fact, or raises OSError, ValueError, SubprocessError or a StrixdError: then it is unknown."""
