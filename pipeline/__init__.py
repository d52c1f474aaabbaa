"""The data pipeline: jobs on Spark, run from plans that the gateway makes."""
