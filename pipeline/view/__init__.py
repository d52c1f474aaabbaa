"""Views: what a query over shared tables shows, made into a table of its own."""
