"""A second policy that decides beside the first: logged, compared, and never displayed."""
