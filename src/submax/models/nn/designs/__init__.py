"""Network designs: architectures with their losses."""
