"""The queries of views: read, checked, and written again for Spark. Nothing else knows the parser."""
