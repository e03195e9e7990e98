"""Authorities and certificates for the tests, made by openssl in a folder."""

import pathlib
import subprocess

import harness  # noqa: F401 (finds the stubs)
from harness import grpc


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, stdin=subprocess.DEVNULL, capture_output=True,
                   timeout=harness.LIMIT_SECONDS)


class Pair:
    """A certificate and its key."""

    def __init__(self, folder, name):
        self.certificate = pathlib.Path(folder) / f"{name}.pem"
        self.key = pathlib.Path(folder) / f"{name}.key"

    def server_flags(self, client_ca=None):
        return ["--tls-certificate", self.certificate, "--tls-key", self.key,
                *(["--tls-client-ca", client_ca.certificate] if client_ca else [])]


class Authority(Pair):
    """Signs certificates for this host."""

    def __init__(self, folder, name="authority"):
        super().__init__(folder, name)
        self._folder = pathlib.Path(folder)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2,
                "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign",  # Python 3.13 asks for it.
                "-keyout", self.key, "-out", self.certificate)

    def sign(self, name, days=2, new_key=("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), subject=None):
        pair = Pair(self._folder, name)
        request, names = self._folder / f"{name}.csr", self._folder / f"{name}.names"
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        openssl("req", "-utf8", "-newkey", *new_key, "-nodes", "-subj", subject or f"/O=tests/CN={name}", "-keyout",
                pair.key, "-out", request)
        sign = ("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                "-extfile", names, "-out", pair.certificate)
        try:
            openssl(*sign, "-days", days)
        except subprocess.CalledProcessError:  # OpenSSL from 3.4 on takes no days before today, and older ones no dates.
            openssl(*sign, "-not_before", "20200101000000Z", "-not_after", "20200102000000Z")
        return pair

    def channel(self, address, as_caller=None):
        """A channel that trusts this authority, and shows a caller's certificate if there is one."""
        own = [as_caller.key.read_bytes(), as_caller.certificate.read_bytes()] if as_caller else []
        credentials = grpc.ssl_channel_credentials(self.certificate.read_bytes(), *own)
        return grpc.secure_channel(address, credentials, [("grpc.use_local_subchannel_pool", 1)])
