"""What every adapter of a port must do, simulated or real: one file per port."""
