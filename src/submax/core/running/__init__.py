"""What running code needs: files, threads, optional packages, counted fallbacks."""
