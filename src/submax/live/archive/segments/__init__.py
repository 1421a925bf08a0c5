"""The files of the archive: columns, folder and records, and how they are read and written."""
