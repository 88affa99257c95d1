"""The control socket: Varlink on the wire, one table of commands, one server."""
