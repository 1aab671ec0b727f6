"""Where depth cameras stand, found from the robot itself: clouds of the arm are matched to its model."""
