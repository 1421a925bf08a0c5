"""Beyond the paper: slates, duels, identification, adversarial rewards, real-valued actions."""
