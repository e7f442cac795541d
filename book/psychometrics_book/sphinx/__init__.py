"""The extensions of Sphinx that ``book/_config.yml`` names, for the pages of the built book."""
