"""The facts about one host that advice needs beyond the step breakdown."""
