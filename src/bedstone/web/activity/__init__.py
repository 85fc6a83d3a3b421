"""Activity: what runs, what is synced, what is done."""
