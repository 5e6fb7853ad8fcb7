"""Programs (``bullswarm.workflow.program.v3``): what a caller may ask for, checked whole and read into values."""
