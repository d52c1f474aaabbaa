"""What brings the environments, programs and documents that developers need."""
