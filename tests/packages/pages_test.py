"""The pages of docs/ as a newcomer follows them: in a clean Debian 12, with what docs/quick_start.md and docs/index.md say to install and the wheels of the daemon and
the engine, without this machine's network, compiler and builds.

Usage, as root: python3 -m tests.packages.pages_test WHEEL_FOLDER [PAGE…]   (the wheels of scripts/engine_wheel; needs debootstrap and mirrors)
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from tests.docs.pages import ROOT, blocks
from tests.docs.run_page import script
from tests.packages.debian import Debian, run

MARK = "tests/packages/pages_test.py"
LIMIT_S = 400
HOME = "/root/tensord"


def tested_pages():
    listed = re.search(r"set\(pages_with_commands ([^)]*)\)", (ROOT / "tests" / "CMakeLists.txt").read_text())
    return [f"{name}.md" for name in listed[1].split()]


def what_the_pages_install():
    """The commands of the blocks that say how to install, the index's last: it has the rest."""
    return "".join(block.code for page in ("quick_start", "index") for block in blocks(ROOT / "docs" / f"{page}.md") if block.run_by == MARK)


def copy_checkout(debian):
    """The files in git, as a clone has them."""
    os.makedirs(debian.path(HOME))
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-C", ROOT, "--null", "-T", "-", "-cf", debian.path("/root/tensord.tar")], input=listed, check=True)
    run("tar", "-C", debian.path(HOME), "-xf", debian.path("/root/tensord.tar"))


def install(debian, wheels):
    pathlib.Path(debian.path("/etc/hosts")).write_text("127.0.0.1 localhost\n")
    # How this machine reaches package registries is no part of the pages.
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", debian.path("/etc/ssl/certs/ca-certificates.crt"))
    for name in ("/etc/pip.conf", "/etc/apt/apt.conf.d/99proxy"):
        if os.path.exists(name):
            shutil.copy(name, debian.path(name))
    os.makedirs(debian.path(f"{HOME}/build/engine_wheel/dist"))
    for wheel in pathlib.Path(wheels).glob("*.whl"):
        shutil.copy(wheel, debian.path(f"{HOME}/build/engine_wheel/dist"))
        shutil.copy(wheel, debian.path(HOME))
    commands = what_the_pages_install().replace("apt install", "apt-get -qq update && apt-get install -y -qq --no-install-recommends")
    debian.run("bash", "-euc", f"export PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1; cd {HOME}; {commands}")


def try_page(debian, page):
    """In a copy of the checkout of its own, with a network of its own that has nothing but the loopback."""
    work = pathlib.Path(debian.path(f"/root/{page.stem}"))
    run("cp", "-a", debian.path(HOME), work)
    (work / "bin").mkdir()
    (work / "bin" / "page.sh").write_text(f". env/bin/activate\n{script(page, work)}")
    command = debian.command("env", f"HOME=/root/{page.stem}", "PYTHONPATH=", "bash", "-c", f"cd /root/{page.stem} && bash bin/page.sh")
    inside = ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", 'ip link set lo up && exec "$@"', "-", *command]
    try:
        done = subprocess.run(inside, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        return f"no end after {LIMIT_S} s\n{(late.stdout or b'').decode(errors='replace')[-4000:]}"
    finally:
        shutil.rmtree(work)
    return "" if done.returncode == 0 else f"ended with {done.returncode}\n{done.stdout[-4000:]}"


def main():
    wheels, *names = sys.argv[1:]
    failed = []
    with Debian("bookworm", ("python3", "python3-venv")) as debian:
        copy_checkout(debian)
        install(debian, wheels)
        for name in names or tested_pages():
            wrong = try_page(debian, ROOT / "docs" / name)
            print(f"{name}: {wrong or 'well'}", flush=True)
            failed += [name] if wrong else []
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
