"""A month of work by every policy, beside what a plan that knows everything could have done."""
