"""The routes, by what they are about: objects, subscriptions, results, the service itself."""
