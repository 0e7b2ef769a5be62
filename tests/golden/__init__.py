"""Results of small models and studies, held as files that a person can review."""
