"""Chat: tools, the forms in which model families call them, and conversations through chat templates."""
