"""The benchmarks, one file each: where they come from and how they are read."""
