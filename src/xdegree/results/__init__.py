"""Plain data that shows, saves and loads itself: explanations, trees, tables."""
