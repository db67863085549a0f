"""Pages and pictures: one self-contained file each, readable without a network."""
