"""Classic policies that ignore the context."""
