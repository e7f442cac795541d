"""Studies: what belongs to one paper, with its figures."""
