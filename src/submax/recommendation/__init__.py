"""Which policy fits a problem: rules with their evidence, and the answers they are chosen by."""
