"""Calls a model from several threads, each one call after the other, and records every failure."""

import threading
import time

import grpc

from tests.e2e.daemon import inference_pb2_grpc, request

POLICY = '{"loadBalancingConfig": [{"round_robin": {}}]}'


class Load:
    """A context manager. new_connections: a connection for each call, as a client behind kube-proxy may; else one for all.

    target may be "ipv4:ADDRESS:PORT,…": then calls go round the addresses. What gRPC's
    library does by itself is left on; nothing is tried again that a server may have seen.
    """

    def __init__(self, target, model, inputs, threads=2, new_connections=False, pause_s=0.02):
        self.target, self.request = target, request(model, inputs)
        self.new_connections, self.pause_s = new_connections, pause_s
        self.calls, self.failures = 0, []
        self.lock, self.is_over = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]

    def channel(self):
        return grpc.insecure_channel(self.target, options=[
            ("grpc.service_config", POLICY), ("grpc.use_local_subchannel_pool", 1)])

    def run(self):
        kept = None if self.new_connections else self.channel()
        while not self.is_over.is_set():
            channel = kept or self.channel()
            try:
                inference_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(self.request, timeout=20)
                failure = None
            except grpc.RpcError as error:
                failure = f"{time.strftime('%X')} {error.code().name}: {error.details()}"
            with self.lock:
                self.calls += 1
                if failure:
                    self.failures.append(failure)
            if kept is None:
                channel.close()
            time.sleep(self.pause_s)
        if kept:
            kept.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
