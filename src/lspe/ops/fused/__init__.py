"""The operators in C: sources, layouts, the bridge to them and every check at that border."""
