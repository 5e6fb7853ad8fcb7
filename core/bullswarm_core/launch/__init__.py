"""How a worker is started: argv, environment, structured output, first start, guarded settings."""
