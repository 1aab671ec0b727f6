"""What benchmarks/chaos.py needs of ROS."""
