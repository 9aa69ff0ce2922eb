"""`tensord launch`: the environment of workers, restarts, signals, the first failure, and that no worker outlives
it."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

from tests.e2e.processes import is_running, wait_until

BINARY = os.environ["TENSORD_BINARY"]


def free_endpoint():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


class LaunchTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tensord_launch_")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def script(self, source):
        """A worker, which leaves its pid behind."""
        with open(self.path("worker.py"), "w") as file:
            file.write(textwrap.dedent("""\
                import json, os, signal, sys, time
                rank, restart = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
                with open(f"{restart}.{rank}.part", "w") as file:
                    file.write(str(os.getpid()))
                os.rename(f"{restart}.{rank}.part", f"{restart}.{rank}.pid")
                def others(count):
                    while not all(os.path.exists(f"{restart}.{other}.pid") for other in range(count)):
                        time.sleep(0.02)
                """) + textwrap.dedent(source))
        return self.path("worker.py")

    def start(self, *arguments, env=None):
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PET_", "RANK"))}
        variables["TENSORD_LAUNCH_SECRET"] = "of these tests"
        return subprocess.Popen([BINARY, "launch", *arguments], cwd=self.folder.name, env={**variables, **(env or {})},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_launch(self, *arguments, env=None):
        process = self.start(*arguments, env=env)
        out, errors = process.communicate(timeout=120)
        return process.returncode, out, errors

    def pid(self, restart, rank):
        name = self.path(f"{restart}.{rank}.pid")
        wait_until(lambda: os.path.exists(name))
        with open(name) as file:
            return int(file.read())

    def test_workers_have_torchruns_environment(self):
        worker = self.script("""
            names = ("RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE "
                     "ROLE_NAME MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS "
                     "TORCHELASTIC_RUN_ID TORCHELASTIC_USE_AGENT_STORE OMP_NUM_THREADS").split()
            print(json.dumps([sys.argv[1:], {name: os.environ[name] for name in names}]))
            """)
        code, out, errors = self.run_launch("--nproc", "2", "--rdzv-id", "job7", worker, "--nproc", "5", "-x", "--", "a b",
                                            env={"PET_MAX_RESTARTS": "4"})
        self.assertEqual(code, 0, errors)
        ports = set()
        for rank in (0, 1):
            line = next(line for line in out.splitlines() if line.startswith(f"[default{rank}]:"))
            arguments, seen = json.loads(line.split(":", 1)[1])
            self.assertEqual(arguments, ["--nproc", "5", "-x", "--", "a b"])
            ports.add(int(seen.pop("MASTER_PORT")))
            self.assertEqual(seen, {
                "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
                "GROUP_WORLD_SIZE": "1", "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": "2", "ROLE_NAME": "default",
                "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "4",
                "TORCHELASTIC_RUN_ID": "job7", "TORCHELASTIC_USE_AGENT_STORE": "False", "OMP_NUM_THREADS": "1"})
        self.assertEqual(len(ports), 1)

    def test_flags_are_variables_too(self):
        worker = self.script("print('here')")
        code, out, errors = self.run_launch("--log-line-prefix-template", "<${local_rank}> ", worker,
                                            env={"PET_NPROC_PER_NODE": "3", "PET_LOCAL_RANKS_FILTER": "0,2"})
        self.assertEqual((code, sorted(out.splitlines())), (0, ["<0> here", "<2> here"]), errors)

    def test_the_first_failure_is_told_and_all_are_stopped(self):
        worker = self.script("""
            others(3)
            if rank == 1:
                for line in range(30):
                    print("line", line, file=sys.stderr)
                sys.exit(3)
            time.sleep(600)
            """)
        code, _, errors = self.run_launch("--nproc", "3", worker)
        self.assertEqual(code, 1)
        self.assertIn("rank 1 (host ", errors)
        self.assertIn("failed first: exit code 3; its last lines:\n  line 10\n", errors)
        self.assertIn("  line 29\n", errors)
        for rank in range(3):
            self.assertFalse(is_running(self.pid(0, rank)))

    def test_all_start_again(self):
        worker = self.script("""
            others(2)
            if restart < 2 and rank == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            print("end", restart, rank)
            """)
        code, out, errors = self.run_launch("--nproc", "2", "--max-restarts", "2", "--log-dir", self.path("logs"), worker)
        self.assertEqual(code, 0, errors)
        self.assertIn("failed first: signal 9 (Killed)", errors)
        self.assertIn("restart 2 of 2", errors)
        self.assertEqual({line for line in out.splitlines() if "end 2" in line},
                         {"[default0]:end 2 0", "[default1]:end 2 1"})
        with open(self.path("logs/attempt_2/1/stdout.log")) as log:
            self.assertEqual(log.read(), "end 2 1\n")
        code, _, errors = self.run_launch("--nproc", "2", "--max-restarts", "0", worker)
        self.assertEqual(code, 1, errors)

    def test_signals_are_passed_on(self):
        worker = self.script("""
            def end(number, frame):
                print("got", number, flush=True)
                sys.exit(0)
            signal.signal(signal.SIGTERM, end)
            others(2)
            open(f"ready{rank}", "w").close()
            while True:
                time.sleep(1)
            """)
        process = self.start("--nproc", "2", worker)
        wait_until(lambda: os.path.exists(self.path("ready0")) and os.path.exists(self.path("ready1")))
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(set(out.split("\n")), {"[default0]:got 15", "[default1]:got 15", ""})
        self.assertIn("ended by signal 15", errors)

    def test_a_worker_that_does_not_stop_is_killed(self):
        worker = self.script("""
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            others(2)
            if rank == 1:
                sys.exit(5)
            time.sleep(600)
            """)
        code, _, errors = self.run_launch("--nproc", "2", "--shutdown-timeout", "1", worker)
        self.assertEqual(code, 1)
        self.assertIn("exit code 5", errors)
        self.assertFalse(is_running(self.pid(0, 0)))

    def test_workers_die_with_a_killed_launcher(self):
        worker = self.script("""
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
            """)
        process = self.start("--nproc", "2", worker)
        pids = [self.pid(0, rank) for rank in range(2)]
        os.kill(pids[1], signal.SIGSTOP)  # a frozen one too
        process.kill()
        process.communicate(timeout=300)
        for pid in pids:
            wait_until(lambda: not is_running(pid))

    def test_two_nodes_start_again_together(self):
        worker = self.script("""
            others(4)
            if restart == 0 and rank == 3:
                sys.exit(9)
            print("end", restart, rank, os.environ["MASTER_PORT"])
            """)
        endpoint = free_endpoint()
        nodes = [self.start("--nnodes", "2", "--node-rank", str(node), "--nproc", "2", "--rdzv", endpoint,
                            "--max-restarts", "1", worker) for node in range(2)]
        ports = set()
        for node, process in enumerate(nodes):
            out, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, errors)
            self.assertIn("rank 3 (host", errors)
            ends = [line for line in out.splitlines() if "end 1" in line]
            self.assertEqual(sorted(line.split()[2] for line in ends), [str(2 * node), str(2 * node + 1)])
            ports |= {line.split()[3] for line in ends}
        self.assertEqual(len(ports), 1)

    def test_nodes_with_different_numbers_of_workers(self):
        worker = self.script("""
            others(6)
            print("place", rank, *(os.environ[name] for name in ("WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")))
            """)
        endpoint = free_endpoint()
        nodes = [self.start("--nnodes", "3", "--node-rank", str(node), "--nproc", str(count), "--rdzv", endpoint, worker)
                 for node, count in enumerate((2, 1, 3))]
        places = []
        for process in nodes:
            out, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, errors)
            places += [line.split("place ")[1] for line in out.splitlines()]
        self.assertEqual(sorted(places), ["0 6 0 2 0", "1 6 1 2 0", "2 6 0 1 1", "3 6 0 3 2", "4 6 1 3 2", "5 6 2 3 2"])

    def test_nodes_find_their_places(self):
        """As Kubeflow's elastic jobs start them; all nodes meet at node 0."""
        worker = self.script("""
            others(3)
            print("place", rank, os.environ["GROUP_RANK"])
            """)
        env = {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": free_endpoint(), "PET_NNODES": "3:3", "PET_NPROC_PER_NODE": "1"}
        nodes = [self.start(worker, env=env) for _ in range(3)]
        places = []
        for process in nodes:
            out, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, errors)
            places += [line.split("place ")[1] for line in out.splitlines()]
        self.assertEqual(sorted(places), ["0 0", "1 1", "2 2"])

    def test_strangers_are_not_let_in(self):
        """The launchers' store listens only where configured, and only admits clients that know the secret."""
        endpoint = free_endpoint()
        node = self.start("--nnodes", "2", "--node-rank", "0", "--rdzv", endpoint, "--join-timeout", "60", self.script(""))
        port = int(endpoint.split(":")[1])

        def is_open(address):
            with socket.socket() as caller:
                caller.settimeout(5)
                return caller.connect_ex((address, port)) == 0
        wait_until(lambda: is_open("127.0.0.1"))
        self.assertFalse(is_open("127.0.0.2"))
        code, _, errors = self.run_launch("--nnodes", "2", "--node-rank", "1", "--rdzv", endpoint, "--join-timeout", "5", self.script(""),
                                          env={"TENSORD_LAUNCH_SECRET": "another"})
        self.assertEqual(code, 1)
        self.assertIn("the token is not that of the server", errors)
        code, _, errors = self.run_launch("--nnodes", "2", "--node-rank", "1", "--rdzv", endpoint, self.script(""),
                                          env={"TENSORD_LAUNCH_SECRET": ""})
        self.assertEqual(code, 1)
        self.assertIn("TENSORD_LAUNCH_SECRET", errors)
        other = self.start("--nnodes", "2", "--node-rank", "1", "--rdzv", endpoint, self.script(""))
        for process in (other, node):
            _, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, errors)

    def test_workers_of_one_node_have_a_secret(self):
        worker = self.script('print("secret", os.environ["TENSORD_LAUNCH_SECRET"])')
        secrets = set()
        for _ in range(2):
            code, out, errors = self.run_launch("--nproc", "2", worker, env={"TENSORD_LAUNCH_SECRET": ""})
            self.assertEqual(code, 0, errors)
            mine = {line.split("secret ")[1] for line in out.splitlines()}
            self.assertEqual(len(mine), 1)
            secrets |= mine
        self.assertEqual(len(secrets), 2)
        self.assertTrue(all(len(secret) == 64 for secret in secrets))

    def test_a_node_that_does_not_come(self):
        code, _, errors = self.run_launch("--nnodes", "2", "--node-rank", "0", "--rdzv", free_endpoint(), "--join-timeout",
                                          "1", self.script(""))
        self.assertEqual(code, 1)
        self.assertIn("not all of the 2 nodes have come", errors)

    def test_wrong_command_lines(self):
        worker = self.script("")
        for arguments, message, env in (
                (["--nproc", "x", worker], "--nproc-per-node: 'x' is not a number", {}),
                (["--nnodes", "1:2", worker], "--nnodes: the number of nodes cannot change", {}),
                (["--nnodes", "2", "--rdzv", "h:1", worker], "--node-rank: which of the 2 nodes is this?", {}),
                (["--nnodes", "2", "--node-rank", "0", worker], "--rdzv-endpoint: several nodes", {}),
                (["--nnodes", "3", worker], "--nnodes is 3, but the environment says WORLD_SIZE=2",
                 {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h"}),
                (["--rdzv-backend", "etcd", worker], "--rdzv-backend: 'etcd' is not known", {}),
                ([self.path("missing")], "missing: cannot be started: No such file", {}),
                ([], "PROGRAM: what is to be run?", {})):
            code, _, errors = self.run_launch(*arguments, env=env)
            self.assertNotEqual(code, 0)
            self.assertIn(message, errors)

    def test_pytorch_trains_under_it(self):
        worker = self.script("""
            import torch
            import torch.distributed as dist
            dist.init_process_group("gloo")
            x = torch.full([3], float(rank + 1))
            dist.all_reduce(x)
            print("sum", x[0].item())
            dist.destroy_process_group()
            """)
        os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        code, out, errors = self.run_launch("--nproc", "2", worker)
        self.assertEqual(code, 0, errors)
        self.assertEqual(sorted(out.splitlines()), ["[default0]:sum 3.0", "[default1]:sum 3.0"])


if __name__ == "__main__":
    unittest.main()
