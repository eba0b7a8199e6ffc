"""Serves the service of Django by the standard library's server, a thread for each request: serve_wsgiref.py PORT."""

import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from django.core.wsgi import get_wsgi_application


class Threading(ThreadingMixIn, WSGIServer):
    """Queues as many connections as an attack opens."""

    daemon_threads = True
    request_queue_size = 1024


server = Threading(("127.0.0.1", int(sys.argv[1])), WSGIRequestHandler)
server.set_app(get_wsgi_application())
server.serve_forever()
