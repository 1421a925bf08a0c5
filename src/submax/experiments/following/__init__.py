"""What a run writes while it goes on, and how result folders are read, finished or not."""
