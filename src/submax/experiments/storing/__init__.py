"""The result files of experiments: directories, manifests, cells and tables on disk."""
