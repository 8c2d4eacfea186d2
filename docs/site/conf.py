"""How the site is built: `make docs`."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

project = "gamedb"
copyright = "the gamedb authors"
version = release = metadata.version("gamedb")
language = "en"

root_doc = "docs/README"
include_patterns = [
    "README.md",
    "docs/*.md",
    "docs/reference/*.md",
    "examples/*.md",
    "examples/*.py",
    "examples/arena/*.py",
    "client_ts/README.md",
    "benchmarks/results/README.md",
    "CHANGELOG.md",
]
exclude_patterns = [
    ".*",
    "build",
    "**/node_modules",
    "**/__init__.py",
]
extensions = ["myst_parser", "docs.site.reference", "docs.site.guides", "docs.site.commands", "docs.site.typescript"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "gamedb"
smartquotes = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
add_module_names = False
python_maximum_signature_line_length = 90
html_show_sourcelink = False
html_copy_source = False
