"""The dashboards, as code: what Grafana reads is generated from it."""
