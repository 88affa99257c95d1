"""One file per thing kept true: what is read, and what follows from it."""
