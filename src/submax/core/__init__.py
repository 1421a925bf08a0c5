"""Records and contracts that everything else in submax stands on."""
