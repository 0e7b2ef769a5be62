"""All golden files, by their paths below `files/`."""

from golden.figures import list_drawings
from golden.models import list_exports, list_models
from golden.studies import list_studies
from golden.texts import list_texts

GOLDENS = list_models() | list_studies() | list_exports() | list_drawings() | list_texts()
