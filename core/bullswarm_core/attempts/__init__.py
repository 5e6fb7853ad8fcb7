"""One attempt at a step: pick, prepare, watch, conclude, check."""
