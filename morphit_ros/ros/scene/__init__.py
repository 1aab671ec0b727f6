"""A perceived scene as messages, and the clouds that it is made of."""
