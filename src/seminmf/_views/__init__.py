"""What plots, reports and tables have in common."""
