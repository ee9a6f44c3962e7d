"""What private information is worth: games of coalitions, and a payoff measured on randomized reports."""
