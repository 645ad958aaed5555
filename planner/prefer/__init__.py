"""Keep the fleet of an earlier plan where it still holds and costs little more than the best one; change little where not."""
