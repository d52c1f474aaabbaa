"""Makes what is written twice of the chart's values: their table in the README, and their schema."""
