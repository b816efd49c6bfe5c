"""Methods of `nearest` plans that exist for comparison with published systems."""
