"""The operations of the HTTP interface, their messages and their description."""
