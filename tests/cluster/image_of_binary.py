"""Builds a container image of a tensord binary and its libraries, without a base image and without a shell.

Usage: image_of_binary.py BINARY IMAGE.tar       (for `docker load`; the image is tensord:cluster)
"""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

NAME = "tensord:cluster"


def files_of(binary):
    """path in the image → file here"""
    files = {"usr/bin/tensord": os.path.realpath(binary)}
    for line in subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout.splitlines():
        path = next((word for word in line.split() if word.startswith("/")), None)
        if path:
            files[path.lstrip("/")] = os.path.realpath(path)
    return files


def layer_of(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as layer:
        for name, mode in (("tmp", 0o1777), ("models", 0o755)):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            layer.addfile(folder)
        for name, path in sorted(files.items()):
            layer.add(path, name)
    return stream.getvalue()


def write(binary, path):
    layer = layer_of(files_of(binary))
    config = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Env": ["PATH=/usr/bin"], "Entrypoint": ["tensord"], "User": "10001:10001"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}}).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [NAME], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as image:
        for name, content in (("layer.tar", layer), (config_name, config), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            image.addfile(entry, io.BytesIO(content))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(*sys.argv[1:])
