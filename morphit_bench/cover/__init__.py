"""Reference formulations of morphing covers."""
