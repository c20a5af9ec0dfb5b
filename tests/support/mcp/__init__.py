"""MCP servers for the tests."""
