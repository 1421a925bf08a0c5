"""The report of a comparison as a page of HTML."""
