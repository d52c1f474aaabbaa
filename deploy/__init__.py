"""What Sluice is deployed with, and the little that proves it where no container engine is at hand."""
