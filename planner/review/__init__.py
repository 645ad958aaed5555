"""Review what a change means: does the fleet that runs still hold, what differs between two plans, and why."""
