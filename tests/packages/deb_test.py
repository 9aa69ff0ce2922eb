"""Installs the Debian packages in a clean Debian, runs their programs, and removes them again.

Usage, as root: python3 -m tests.packages.deb_test FOLDER   (scripts/package calls it; needs debootstrap and a mirror)
"""

import glob
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

from tests.packages.debian import ROOT, TWO_PROCESSES, Debian, write_pictures

UNIT = "/lib/systemd/system/tensord.service"


def unit_settings(debian):
    """Directive → values, of the installed unit."""
    settings = {}
    for line in pathlib.Path(debian.path(UNIT)).read_text().splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            settings.setdefault(name, []).append(value)
    return settings


class Service:
    """Simulates systemd, as far as possible in a chroot: the unit's user, its command, its environment file, its address families, the
    notification socket, and an inherited gRPC socket."""

    def __init__(self, debian, flags):
        settings = unit_settings(debian)
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.told.bind(debian.path("/run/notify"))
        os.chmod(debian.path("/run/notify"), 0o777)
        self.told.settimeout(30)
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        default = dict(line.split("=", 1) for line in pathlib.Path(debian.path("/etc/default/tensord")).read_text().splitlines()
                       if line and not line.startswith("#"))
        command = settings["ExecStart"][0].replace("$TENSORD_OPTIONS", default["TENSORD_OPTIONS"] + " " + flags)
        user = settings["User"][0]
        families = f"{sys.executable} {ROOT}/tests/packages/address_families.py {settings['RestrictAddressFamilies'][0]} --"
        # LISTEN_PID must be the process itself, whose number is only known inside it.
        start = (f"exec 3<&{self.listener.fileno()}; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=grpc NOTIFY_SOCKET=/run/notify; "
                 f"exec {families} chroot --userspec={user}:{user} {debian.folder} {command}")
        self.process = subprocess.Popen(["bash", "-c", start], pass_fds=[self.listener.fileno()], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)

    def wait_for(self, state):
        while True:
            try:
                message = self.told.recv(4096).decode().splitlines()
            except TimeoutError:
                self.process.kill()
                raise SystemExit(f"{state} was not told; the log is:\n{self.process.stderr.read()}") from None
            if message[0] == state:
                return

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.wait_for("STOPPING=1")
        code = self.process.wait(40)
        log = self.process.stderr.read()
        assert code == 0, f"exit code {code}:\n{log}"
        return log


def check_files(debian):
    run_files = debian.run("dpkg", "-L", "tensord")
    for wanted in ("/usr/bin/tensord", "tensord.service", "tensord.socket", "/usr/share/man/man1/tensord-serve.1",
                   "bash-completion/completions/tensord", "vendor-completions/_tensord", "tensord.fish", "sysusers.d/tensord.conf"):
        assert wanted in run_files, f"{wanted} is not in the package"
    missing = debian.run("sh", "-c", "ldd /usr/bin/tensord | grep 'not found' || true")
    assert not missing, missing
    print(debian.run("tensord", "--version").strip(), "installed;",
          debian.run("dpkg-query", "-W", "-f", "${Installed-Size}", "tensord"), "KB; user:",
          debian.run("getent", "passwd", "tensord").strip())
    debian.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "systemd")
    print(debian.run("sh", "-c", "systemd-analyze verify --man=no tensord.service tensord.socket 2>&1 || true").strip()
          or "systemd-analyze verify: nothing to say")
    print(debian.run("systemd-analyze", "security", "--offline=true", UNIT).strip().splitlines()[-1])


def check_service(debian):
    shutil.copytree(ROOT / "examples" / "models" / "shapes", debian.path("/var/lib/tensord/models/shapes"))
    service = Service(debian, "--metrics-port 0")
    service.wait_for("READY=1")
    tensord = ("tensord", "models", "--address", service.address, "--json")
    models = [json.loads(line) for line in debian.run(*tensord).splitlines()]
    assert [(model["name"], model["state"]) for model in models] == [("shapes", "READY")], models
    write_pictures(debian.path("/var/lib/tensord/data/pictures.safetensors"))
    assert "COMPLETED" in debian.run("tensord", *TWO_PROCESSES, "--address", service.address)
    # Like systemctl reload: a new model is served at once.
    copied = debian.path("/var/lib/tensord/models/more")
    shutil.copytree(ROOT / "examples" / "models" / "shapes", copied)
    for path in [copied, *glob.glob(copied + "/**", recursive=True)]:
        os.utime(path, (time.time() - 60, time.time() - 60))
    service.process.send_signal(signal.SIGHUP)
    service.wait_for("RELOADING=1")
    service.wait_for("READY=1")
    models = [json.loads(line)["name"] for line in debian.run(*tensord).splitlines()]
    assert models == ["more", "shapes"], models
    log = service.stop()
    assert service.address in log, log
    print("the service started with its socket, served, reloaded and stopped")


def check_removal(debian):
    debian.run("apt-get", "remove", "-y", "-qq", "tensord")
    assert not os.path.exists(debian.path("/usr/bin/tensord"))
    debian.run("dpkg", "--purge", "tensord")
    assert not os.path.exists(debian.path("/etc/default/tensord"))
    assert os.path.exists(debian.path("/var/lib/tensord/models/shapes")), "models of people are gone"
    print("removed; models stayed")


def check_development(debian, package):
    debian.install(package)
    debian.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "g++", "cmake", "make")
    shutil.copytree(ROOT / "examples" / "cpp", debian.path("/root/cpp"))
    debian.run("cmake", "-S", "/root/cpp", "-B", "/root/build")
    debian.run("cmake", "--build", "/root/build")
    shutil.copy(ROOT / "examples" / "models" / "shapes" / "1" / "model.pt", debian.path("/root/"))
    print("built with tensord-dev:", debian.run("/root/build/fit_line").strip(), "|",
          debian.run("/root/build/run_shapes", "/root/model.pt").strip())


def main():
    folder = sys.argv[1]
    daemon, = glob.glob(f"{folder}/tensord_*.deb")
    development, = glob.glob(f"{folder}/tensord-dev_*.deb")
    with Debian() as debian:
        debian.install(daemon)
        check_files(debian)
        check_service(debian)
        check_removal(debian)
        check_development(debian, development)
        # Both packages beside each other.
        debian.install(daemon)
        ranks = debian.run("tensord", "launch", "--nproc", "2", "/root/build/train_together")
        assert "rank 0 of 2: y = 3.000x" in ranks and "rank 1 of 2" in ranks, ranks
    print("the packages are well")


if __name__ == "__main__":
    main()
