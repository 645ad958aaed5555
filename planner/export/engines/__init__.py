"""The engines that exports can start, one a module."""
