"""tritonclient over TLS, with and without a certificate of its own."""

import datetime
import ipaddress
import os
import tempfile
import unittest

import grpc
import numpy as np
import tritonclient.grpc as grpcclient
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tritonclient.utils import InferenceServerException

from tests.e2e.clients import support
from tests.e2e.clients.support import add_sub_inputs


class Authority:
    """Signs certificates for this machine and writes them to a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self.make("tests", self.key, is_authority=True)
        self.root = self.write("root.crt", self.certificate.public_bytes(serialization.Encoding.PEM))

    def make(self, name, key, is_authority=False):
        now = datetime.datetime.now(datetime.timezone.utc)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = subject if is_authority else self.certificate.subject
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
                .not_valid_after(now + datetime.timedelta(days=1))
                .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
                .add_extension(x509.SubjectAlternativeName(names), critical=False).sign(self.key, hashes.SHA256()))

    def issue(self, name):
        """Paths of a new key and its certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption())
        certificate = self.make(name, key).public_bytes(serialization.Encoding.PEM)
        return self.write(f"{name}.key", pem), self.write(f"{name}.crt", certificate)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path


class TlsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.authority = Authority(folder.name)
        self.key, self.certificate = self.authority.issue("server")

    def start(self, *flags):
        daemon = support.start("--grpc-server-cert", self.certificate, "--grpc-server-key", self.key, *flags)
        self.addCleanup(daemon.__exit__)
        return daemon.ready["grpc"]

    def check(self, address, **kwargs):
        a, b, inputs = add_sub_inputs()
        with grpcclient.InferenceServerClient(address, **kwargs) as client:
            np.testing.assert_array_equal(
                client.infer("simple", inputs, client_timeout=300).as_numpy("OUTPUT0"), a + b)

    def refused(self, address, **kwargs):
        with grpcclient.InferenceServerClient(address, **kwargs) as client:
            with self.assertRaises(InferenceServerException) as caught:
                client.infer("simple", add_sub_inputs()[2], client_timeout=300)
        self.assertEqual(caught.exception.status(), "StatusCode.UNAVAILABLE")

    def test_tls(self):
        address = self.start("--grpc-use-ssl", "true")
        self.check(address, ssl=True, root_certificates=self.authority.root)
        with open(self.authority.root, "rb") as root:
            self.check(address, creds=grpc.ssl_channel_credentials(root.read()))
        self.refused(address)
        stranger = Authority(tempfile.mkdtemp(dir=self.authority.folder))
        self.refused(address, ssl=True, root_certificates=stranger.root)

    def test_mutual_tls(self):
        address = self.start("--grpc-use-ssl-mutual", "true", "--grpc-root-cert", self.authority.root)
        key, certificate = self.authority.issue("client")
        known = {"ssl": True, "root_certificates": self.authority.root}
        self.check(address, **known, private_key=key, certificate_chain=certificate)
        self.refused(address, **known)
        key, certificate = Authority(tempfile.mkdtemp(dir=self.authority.folder)).issue("stranger")
        self.refused(address, **known, private_key=key, certificate_chain=certificate)


if __name__ == "__main__":
    unittest.main()
