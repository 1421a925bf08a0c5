"""Policies for plain arms without context."""
