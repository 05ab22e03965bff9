"""One format for every set of graphs: flat arrays in one file, mapped into memory, its encodings beside it."""
