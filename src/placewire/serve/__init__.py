"""The service: HTTP in and out, delivery that can be trusted, and the live map (`page/`)."""
