"""Motion of rigid bodies in contact: compiled steps, rollouts and their exact derivatives."""
