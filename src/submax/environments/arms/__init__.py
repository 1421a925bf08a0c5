"""Plain arms without context."""
