"""Pictures of a timeline, made without a browser: SVG for pages, PNG for agents."""
