"""What a policy and an environment must do, and the records that pass between them."""
