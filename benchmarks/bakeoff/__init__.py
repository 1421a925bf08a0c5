"""Methods of other libraries on classification tables."""
