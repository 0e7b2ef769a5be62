"""What people see of a fitted model."""
