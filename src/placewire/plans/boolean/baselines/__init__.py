"""Methods of boolean plans that exist for comparison with published systems."""
