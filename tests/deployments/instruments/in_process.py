"""Sends requests to a program by the test client of its framework, which has no address, and prints the statuses.

Run in the program's folder: in_process.py PLACE, where PLACE is MODULE:APP of Starlette or FastAPI, or "django". Reads
requests as JSON, each a path, a kind of content and the content.
"""

import importlib
import json
import sys


def starlette_statuses(place, requests):
    from starlette.testclient import TestClient

    module, name = place.split(":")
    app = getattr(importlib.import_module(module), name)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as client:
        return [
            client.post(path, content=content, headers={"content-type": kind}).status_code
            for path, kind, content in requests
        ]


def django_statuses(requests):
    import django

    django.setup()
    from django.test import Client
    from django.test.utils import setup_test_environment

    setup_test_environment()
    client = Client(raise_request_exception=False, REMOTE_ADDR="")
    return [client.post(path, content, content_type=kind).status_code for path, kind, content in requests]


asked = json.load(sys.stdin)
print(json.dumps(django_statuses(asked) if sys.argv[1] == "django" else starlette_statuses(sys.argv[1], asked)))
