"""A person's own graphs: PyG ``Data`` and graph files."""
