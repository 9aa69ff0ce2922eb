"""The server of fetch_test.py: files, an S3 that checks signatures, a hub of repositories; with faults on request."""

import base64
import datetime
import hashlib
import hmac
import http.server
import json
import re
import threading
import urllib.parse

KEY, SECRET, SESSION, REGION = "AKIDEXAMPLE", "secret/with+signs", "session", "eu-west-9"
HF_TOKEN = "hf_secret"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def pattern(size, seed=1):
    """Bytes that no compression or repetition could hide mistakes in."""
    return b"".join(hashlib.sha256(f"{seed} {i}".encode()).digest() for i in range(-(-size // 32)))[:size]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with self.server.lock:
            self.server.seen.append((self.path, dict(self.headers.items())))
        path, _, query = self.path.partition("?")
        for prefix, handle in (("/s3/", self.s3), ("/bucket", self.s3), ("/api/", self.hub_api), ("/owner/", self.hub_file), ("/", self.file)):
            if path.startswith(prefix):
                return handle(urllib.parse.unquote(path), query)

    def file(self, path, _query, etag=None):
        server = self.server
        if path in server.holds:
            asked, goes_on = server.holds[path]
            asked.set()
            goes_on.wait(60)
        if self.path in server.redirects:
            return self.answer(302, b"elsewhere", Location=server.redirects[self.path])
        if server.failures.get(path):
            return self.answer(server.failures[path].pop(0), b'{"error":"not now"}')
        if path not in server.files:
            return self.answer(404, b"<Error><Message>no such thing</Message></Error>")
        self.send_bytes(path, server.files[path], server.etags.get(path, etag))

    def send_bytes(self, path, data, etag):
        """All or a range, cut off as server.cuts says."""
        first = 0
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        is_same = self.server.ignores_if_range or self.headers.get("If-Range", etag) == etag
        if wanted and is_same and int(wanted[1]) < len(data):
            first = int(wanted[1])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        elif wanted and is_same:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("ETag", etag)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        else:
            self.send_response(200)
        cuts = self.server.cuts.get(path, [])
        end = min(len(data), first + cuts.pop(0)) if cuts else len(data)
        encodings = self.server.encodings.get(path, [])
        if "Transfer-Encoding" in dict(encodings):
            self.close_connection = True
        else:
            self.send_header("Content-Length", self.server.lengths.get(path, str(len(data) - first)))
        if etag:
            self.send_header("ETag", etag)
        for name, value in encodings:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[first:end])
        if end < len(data):
            self.close_connection = True

    # -- S3 --

    def signature_fault(self):
        """Why the request's signature is not AWS's version 4; empty if it is."""
        given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
                             self.headers.get("Authorization", ""))
        if not given:
            return "no signature"
        key, day, region, names, signature = given.groups()
        stamp = self.headers["x-amz-date"]
        now = datetime.datetime.now(datetime.timezone.utc)
        then = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if (key, region) != (KEY, REGION) or not stamp.startswith(day) or abs((now - then).total_seconds()) > 900:
            return "other credentials or time"
        if not {"host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"} <= set(names.split(";")):
            return "fields that are not signed"
        path, _, query = self.path.partition("?")
        pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
        canonical_query = "&".join(f"{urllib.parse.quote(k, safe='-_.~')}={urllib.parse.quote(v, safe='-_.~')}" for k, v in pairs)
        canonical_path = urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~")
        fields = "".join(f"{name}:{self.headers[name].strip()}\n" for name in names.split(";"))
        canonical = "\n".join(["GET", canonical_path, canonical_query, fields, names, self.headers["x-amz-content-sha256"]])
        to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, f"{day}/{region}/s3/aws4_request", sha256(canonical.encode())])
        secret = ("AWS4" + SECRET).encode()
        for part in (day, region, "s3", "aws4_request", to_sign):
            secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
        if self.headers["x-amz-security-token"] != SESSION:
            return "another session"
        return "" if secret.hex() == signature else "another signature"

    def s3(self, path, query):
        fault = self.signature_fault()
        if fault:
            return self.answer(403, f"<Error><Code>SignatureDoesNotMatch</Code><Message>{fault}</Message></Error>".encode())
        bucket, _, key = path.lstrip("/").partition("/")
        objects = self.server.objects
        if key:
            if key not in objects:
                return self.answer(404, b"<Error><Message>The specified key does not exist.</Message></Error>")
            return self.send_bytes(path, objects[key], f'"{hashlib.md5(objects[key]).hexdigest()}"')
        if self.server.is_elsewhere:
            return self.answer(301, x_amz_bucket_region="eu-other-1")
        if self.server.is_endless:
            return self.answer(200, b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken>"
                               b"</ListBucketResult>" % len(self.server.seen))
        asked = dict(urllib.parse.parse_qsl(query))
        keys = sorted(k for k in objects if k.startswith(asked.get("prefix", "")))
        start = int(base64.b64decode(asked["continuation-token"])) if "continuation-token" in asked else 0
        page = keys[start:start + 2]
        xml = "".join(f"<Contents><Key>{k.replace('&', '&amp;').replace('<', '&lt;')}</Key><ETag>&quot;{hashlib.md5(objects[k]).hexdigest()}&quot;</ETag>"
                      f"<Size>{len(objects[k])}</Size></Contents>" for k in page)
        more = start + 2 < len(keys)
        token = f"<NextContinuationToken>{base64.b64encode(str(start + 2).encode()).decode()}</NextContinuationToken>" if more else ""
        self.answer(200, f'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>{bucket}</Name>'
                         f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{xml}</ListBucketResult>".encode())

    # -- The hub --

    def hub_api(self, path, query):
        if self.headers.get("Authorization") != f"Bearer {HF_TOKEN}":
            return self.answer(401, b'{"error":"Invalid credentials"}')
        if path == "/api/models/owner/name/revision/v1":
            return self.answer(200, json.dumps({"sha": COMMIT}).encode())
        if path != f"/api/models/owner/name/tree/{COMMIT}":
            return self.answer(404, b'{"error":"Repository not found"}')
        entries = [{"type": "directory", "path": "onnx", "oid": "0" * 40, "size": 0}]
        for name, data in sorted(self.server.hub.items()):
            entry = {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
            if len(data) > 1000:
                entry.update(oid="1" * 40, lfs={"oid": sha256(data), "size": len(data), "pointerSize": 134})
            entry.update(self.server.hub_changes.get(name, {}))
            entries.append(entry)
        if self.server.hub_never_ends:
            return self.answer(200, b"[]", Link=f'<?cursor={len(self.server.seen)}>; rel="next"')
        half = len(entries) // 2
        if "cursor" in query:
            return self.answer(200, json.dumps(entries[half:]).encode())
        self.answer(200, json.dumps(entries[:half]).encode(), Link=f'<{self.server.url}{self.path}&cursor=x>; rel="next"')

    def hub_file(self, path, query):
        name = path.removeprefix(f"/owner/name/resolve/{COMMIT}/")
        if name == path or name not in self.server.hub or self.headers.get("Authorization") != f"Bearer {HF_TOKEN}":
            return self.answer(404, b"Entry not found")
        if len(self.server.hub[name]) > 1000:  # large files are elsewhere, and that place must not see the token
            self.server.other.files["/lfs/" + name] = self.server.hub[name]
            return self.answer(302, Location=f"{self.server.other.url}/lfs/{name}?signed=secret")
        self.send_bytes(path, self.server.hub[name], '"git"')


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.seen, self.files, self.etags, self.redirects, self.failures, self.cuts = [], {}, {}, {}, {}, {}
        self.holds = {}  # path → (set when it was asked for, awaited before the answer)
        self.objects, self.hub, self.hub_changes, self.other = {}, {}, {}, None
        self.is_endless = self.is_elsewhere = False
        self.encodings = {}  # path → (name, value) of header fields
        self.lengths, self.ignores_if_range, self.hub_never_ends = {}, False, False
        self.url = f"{'https' if context else 'http'}://{'localhost' if context else '127.0.0.1'}:{self.server_port}"
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass
