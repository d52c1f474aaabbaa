"""Makes what of the chart is made from something else: table and schema of its values, copies of alerts."""
