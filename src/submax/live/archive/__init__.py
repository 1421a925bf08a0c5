"""Old, settled events in Parquet segments beside the store, and reading them with the others."""
