"""Exports of logs, written without delaying decisions."""
