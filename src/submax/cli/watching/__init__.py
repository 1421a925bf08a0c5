"""Carries out the commands about shadows and alarms."""
