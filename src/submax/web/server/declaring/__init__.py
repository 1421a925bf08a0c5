"""What may be declared over HTTP: limits on parameters, and a trial of every declaration."""
