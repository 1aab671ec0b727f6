"""Which nodes make up a job: one description for launch files and for the supervisor."""
