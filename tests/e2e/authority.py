"""A certificate authority of the tests, using openssl."""

import os
import subprocess


class Authority:
    """Its certificate and key are files of the folder."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.cert, self.key = self.path("pem"), self.path("key")
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                 self.key, "-out", self.cert, "-days", "2", "-subj", f"/CN={name}")

    def path(self, ending):
        return os.path.join(self.folder, f"{self.name}.{ending}")

    @staticmethod
    def run(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def sign(self, subject):
        """Returns the PEM texts of a certificate and its key."""
        key, wanted, cert, extension = (os.path.join(self.folder, f"{subject}.{end}")
                                        for end in ("key", "csr", "pem", "ext"))
        with open(extension, "w") as out:
            out.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                 wanted, "-subj", f"/CN={subject}")
        self.run("x509", "-req", "-in", wanted, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-out", cert,
                 "-days", "2", "-extfile", extension)
        return read(cert), read(key)


def read(path):
    with open(path, "rb") as file:
        return file.read()
