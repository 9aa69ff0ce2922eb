"""Kills and freezes ranks of a training job at random, and compares what comes out with an undisturbed job, bit by bit.

Usage: TENSORD_BINARY=build/dev/server/tensord /usr/bin/python3 -m tests.e2e.training.rank_faults [--faults 100] [--world-size 2] [--seed 0]
         [--silent-after 3]
"""

import argparse
import os
import random
import signal
import sys
import time

import torch

from tests.e2e.training import training_models as models
from tests.e2e.training.training_daemon import AT_REST, COMPLETED, TrainingDaemon, training

WAIT_S = 600  # for the effects of a fault, on a busy machine


def job_of(options):
    return dict(model=training.ModelSource(name="norms", version=1), data="norms.pt", steps=options.steps, batch_size=32,
                optimizer=training.Optimizer(name="sgd", lr=0.01, momentum=0.9), publish=training.PublishPolicy(when="at_end"),
                checkpoints=training.CheckpointPolicy(every_steps=20),
                distribution=training.Distribution(world_size=options.world_size, timeout_seconds=options.silent_after, max_restarts=1000))


def strike(server, job_id, chance):
    """One fault, somewhere between two checkpoints; False once the job has ended or is paused."""
    before = server.get(job_id).progress.restarts
    now = server.wait_until(job_id, lambda now: now.state in AT_REST or (
        now.progress.restarts == before and len(now.progress.ranks) > 1 and
        now.progress.step > now.progress.checkpoint_step), WAIT_S)
    if now.state in AT_REST:
        return False
    time.sleep(chance.uniform(0, 0.3))
    victim, number = chance.choice(now.progress.ranks), chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP))
    try:
        os.kill(victim.pid, number)
    except ProcessLookupError:
        return True
    server.wait_until(job_id, lambda now: now.state in AT_REST or now.progress.restarts > before, WAIT_S)
    print(f"rank {victim.rank} {signal.Signals(number).name} near step {now.progress.step}", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--silent-after", type=int, default=3, help="seconds after which a rank counts as lost")
    options = parser.parse_args()
    options.steps = 200 + 60 * options.faults
    torch.manual_seed(0)
    server = TrainingDaemon()
    models.save(models.BatchNormNet(), server.models, "norms")
    x, y = models.clusters(1000, 16, 4, seed=2)
    server.save_data("norms.pt", x=x, y=y)
    server.start()
    try:
        whole = server.run(**job_of(options))
        assert whole.state == COMPLETED, whole.message
        chance, struck = random.Random(options.seed), 0
        job = server.create(**job_of(options))
        while struck < options.faults and strike(server, job.id, chance):
            struck += 1
        done, _ = server.watch(job.id, timeout=3600)
        assert done.state == COMPLETED, done.message
        ours, theirs = (server.weights("norms", each.published_version) for each in (done, whole))
        different = [name for name, weight in ours.items() if not torch.equal(weight, theirs[name])]
        print(f"{struck} faults, {done.progress.restarts} restarts, {done.progress.step} steps; different: {different}")
        return bool(different)
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
