"""The process of context.LiveProbe: ADDRESS LIMIT_S fresh|kept CERTIFICATE [KEY=VALUE…]. Prints `ready` after the first
response; when its input ends, the worst time in seconds, the number of calls, and how many of them failed."""

import select
import sys
import time

import grpc

LIVE = "/inference.GRPCInferenceService/ServerLive"


def connect(address, certificate):
    options = [("grpc.use_local_subchannel_pool", 1)]
    if not certificate:
        return grpc.insecure_channel(address, options=options)
    with open(certificate, "rb") as file:
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(file.read()), options=options)


def main():
    address, limit, connections, certificate = sys.argv[1:5]
    metadata = [tuple(argument.split("=", 1)) for argument in sys.argv[5:]]
    limit_s, worst, calls, failed, channel = float(limit), 0.0, 0, 0, None
    while True:
        begin = time.monotonic()
        if channel is None:
            channel = connect(address, certificate)
        try:
            channel.unary_unary(LIVE)(b"", timeout=limit_s, metadata=metadata, wait_for_ready=True)
            elapsed = time.monotonic() - begin
        except grpc.RpcError:
            failed += calls > 0
            elapsed = max(limit_s, time.monotonic() - begin)
        if connections == "fresh":
            channel.close()
            channel = None
        if calls == 0:
            print("ready", flush=True)  # the first response includes connecting
        else:
            worst = max(worst, elapsed)
        calls += 1
        if select.select([sys.stdin], [], [], 0.1)[0]:
            break
    print(worst, calls, failed)


if __name__ == "__main__":
    main()
