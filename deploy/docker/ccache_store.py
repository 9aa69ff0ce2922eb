"""Serves a folder as ccache's remote storage over HTTP, for compilers in a container build.

Usage: python3 -m deploy.docker.ccache_store FOLDER PORT_FILE     listens on 127.0.0.1, writes the port to PORT_FILE

A ccache outside uses the same folder with CCACHE_REMOTE_STORAGE=file:FOLDER.
"""

import http.server
import os
import pathlib
import re
import sys
import tempfile

KEY = re.compile(r"/([0-9a-z]{2})/([0-9a-z]+)")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: pathlib.Path

    def entry(self):
        match = KEY.fullmatch(self.path)
        return self.root / match[1] / match[2] if match else None

    def answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = self.entry()
        if path is None or not path.is_file():
            return self.answer(404)
        return self.answer(200, path.read_bytes())

    do_HEAD = do_GET

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.entry()
        if path is None:
            return self.answer(400)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Readers never see a partial file.
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(body)
        os.replace(file.name, path)
        return self.answer(201)

    def do_DELETE(self):
        path = self.entry()
        if path is None or not path.is_file():
            return self.answer(404)
        path.unlink()
        return self.answer(204)

    def log_message(self, *_):
        pass


def main() -> None:
    Handler.root = pathlib.Path(sys.argv[1])
    Handler.root.mkdir(parents=True, exist_ok=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pathlib.Path(sys.argv[2]).write_text(str(server.server_port))
    server.serve_forever()


if __name__ == "__main__":
    main()
