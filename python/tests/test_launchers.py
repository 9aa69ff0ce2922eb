"""Ranks from the variables of launchers other than torchrun."""

import os
import socket
import subprocess
import sys

import pytest

from tensord.engine import distributed as dist

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="this build has no Gloo")
TIMEOUT_S = 120


@pytest.mark.parametrize("names", ["OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE", "PMI_RANK PMI_SIZE", "SLURM_PROCID SLURM_NTASKS"])
def test_ranks_that_other_launchers_give(names):
    """Slurm also provides a host and the number of a port; torchrun's variables take precedence."""
    rank_name, size_name = names.split()
    program = ("from tensord import engine\nfrom tensord.engine import distributed as dist\ndist.init_process_group()\n"
               "x = engine.ones(1) * dist.get_rank()\ndist.all_reduce(x)\nprint(dist.get_world_size(), x.item())\ndist.destroy_process_group()")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("RANK", "WORLD_SIZE", "MASTER_", "SLURM_", "OMPI_", "PMI_"))}
    variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if "SLURM" in names:
        variables |= {"SLURM_JOB_NODELIST": "localhost,n[1-3]"}
        del variables["MASTER_ADDR"]
    processes = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env={**variables, rank_name: str(rank), size_name: "3"}) for rank in range(3)]
    for process in processes:
        assert process.communicate(timeout=TIMEOUT_S)[0] == "3 3.0\n"
