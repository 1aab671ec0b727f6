"""What cameras saw of one object: pictures, depths and clouds with their poses, recordings, checks of them."""
