"""What a plan can be exported to, one target a module."""
