"""What built the files under ``data/``: population, heads, diagnostic, beliefs, interventions."""
