"""The pages of the server: what each shows, who may see it, and how it is sent."""
