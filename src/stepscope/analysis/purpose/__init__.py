"""What the computing work of a step is for, and which of it the step does not need."""
