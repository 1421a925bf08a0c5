"""What is sent to a server and what it answers: bodies, errors, attempts and options."""
