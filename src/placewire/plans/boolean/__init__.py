"""Plans that divide the world into leaves by space, by text or by both, and their planner."""
