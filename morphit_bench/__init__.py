"""What measures morphit_ros and compares it with what others published; not needed to run it."""
