"""Route objects to the workers that must see them, and choose what each worker probes."""
