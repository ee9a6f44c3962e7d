"""The value of private information: coalition games, and a payoff measured on randomized reports."""
