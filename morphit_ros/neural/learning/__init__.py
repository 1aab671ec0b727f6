"""Learning density fields from posed pictures, in plain torch on one core."""
