"""What is drawn of each capability, as display lists."""
