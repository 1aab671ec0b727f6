"""Faults put into a running pick, and what the arm does then: cells, the job they happen to, the table."""
