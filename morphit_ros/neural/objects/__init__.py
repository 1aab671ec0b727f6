"""One object as the node holds it: what is known of it, how it moves when it is pushed, what that tells."""
