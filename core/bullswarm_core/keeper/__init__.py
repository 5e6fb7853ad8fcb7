"""The keeper: the small process that holds a worker, and the kernel's side of it."""
