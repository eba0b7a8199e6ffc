"""Sets Django up before anything imports a model. The fixtures are in project.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()

pytest_plugins = ["doorkeep.testing", "project"]
