"""From what is measured to motor rates: estimation, tracking, the quadratic programme, supervision."""
