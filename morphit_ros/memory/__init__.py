"""What is known of things from earlier looks and picks: recognised by shape, kept in a folder. Without ROS."""
