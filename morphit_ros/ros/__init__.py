"""What the nodes share: parameters from dataclasses, names and QoS, message conversions, the runner."""
