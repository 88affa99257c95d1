"""Faults of the model, of Ray and of the hosts on two real hosts: tokens come again, with nobody giving a command."""
