"""Answers for agents: a server of the Model Context Protocol, `stepscope mcp`."""
