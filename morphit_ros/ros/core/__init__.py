"""What every node shares: names and QoS, parameters, conversions, frames, the runner."""
