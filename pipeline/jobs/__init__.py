"""Entry points: a module for each kind of job, for the runner and for spark-submit alike."""
