"""What brings the gateway to where it runs."""
