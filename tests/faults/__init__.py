"""What a change of the settings meets on real hosts: kills, restarts, other people. `make test-faults`: minutes."""
