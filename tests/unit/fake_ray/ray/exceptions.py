"""The two errors that a look meets."""


class RayError(Exception):
    pass


class AuthenticationError(RayError):
    pass
