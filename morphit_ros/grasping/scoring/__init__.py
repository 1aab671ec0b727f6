"""How good a grasp is: wrench, robustness, ranking."""
