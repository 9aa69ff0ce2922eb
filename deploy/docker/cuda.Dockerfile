# tensord with its CUDA kernels. scripts/image cuda builds it; by hand, with BuildKit, from the root of the sources:
#   docker build -f deploy/docker/cuda.Dockerfile -t tensord-cuda .   and then   docker run --gpus all …
# CUDA's runtime is inside libtensord_cuda.so; the driver's library comes from the host.
# The last stage has no shell and no package manager: Debian's C library, OpenSSL and certificates, and tensord.
ARG BASE=debian:bookworm-slim
# The source of the CUDA compiler: NVIDIA's wheels, or an image with the toolkit in /usr/local/cuda.
ARG CUDA=wheels
# The stage that provides the binary: `build` compiles it, `ready` takes build/image/tensord of the context.
ARG BINARY=build

# The packages of a build, as in scripts/setup. A separate stage, so that other changes of that script do not reinstall
# them.
FROM ${BASE} AS packages
COPY scripts/setup /
RUN sed -n '/^build=(/,/^)/{/[()]/!p}' /setup >/packages

FROM ${BASE} AS tools
COPY --from=packages /packages /
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive xargs -a /packages apt-get install -y -qq --no-install-recommends \
 && rm -rf /var/lib/apt/lists/*
# The locale is part of the compiler cache's keys; most machines have this one.
ENV LANG=C.UTF-8

# oneDNN takes as long as the rest to compile, and changes only with its script.
FROM tools AS onednn
COPY scripts/onednn /scripts/onednn
# A ccache storage to share with other builds: http://host:port/ or redis://host.
ARG CCACHE_REMOTE_STORAGE=
ARG JOBS=
RUN --mount=type=cache,id=tensord-ccache,target=/root/.cache/ccache \
    CMAKE_BUILD_PARALLEL_LEVEL=${JOBS} /scripts/onednn /onednn

# nvcc with its tools, and the headers and static library of the runtime: 105 MB of wheels. The rest of the toolkit is
# not used.
FROM ${BASE} AS wheels
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-pip \
 && rm -rf /var/lib/apt/lists/*
# Certificates to trust may be passed as a secret, for networks with an intercepting proxy.
RUN --mount=type=secret,id=certificates,target=/certificates \
    if [ -s /certificates ]; then export PIP_CERT=/certificates; fi \
 && pip install --quiet --no-cache-dir --no-deps --target /wheels nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 \
      nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cuda-culibos==13.0.85 \
 && mv /wheels/nvidia/cu13 /usr/local/cuda && cd /usr/local/cuda && ln -s lib lib64 && ln -s libcudart.so.13 lib/libcudart.so

FROM ${CUDA} AS cuda

FROM tools AS build
COPY --from=cuda /usr/local/cuda /usr/local/cuda
WORKDIR /src
COPY . .
COPY --from=onednn /onednn build/onednn
ARG CCACHE_REMOTE_STORAGE=
ARG JOBS=
RUN --mount=type=cache,id=tensord-ccache,target=/root/.cache/ccache \
    CMAKE_BUILD_PARALLEL_LEVEL=${JOBS} scripts/build static-cuda \
 && install -D --strip build/static-cuda/server/tensord /tensord \
 && install -D --strip build/static-cuda/lib/tensord/libtensord_gloo.so /libtensord_gloo.so \
 && install -D --strip build/static-cuda/lib/tensord/libtensord_cuda.so /libtensord_cuda.so \
 && deploy/docker/linked_packages build/static-cuda/build.ninja /tensord.linked

FROM scratch AS ready
COPY build/image /

FROM ${BINARY} AS binary

FROM tools AS files
COPY --from=binary /tensord /tensord
COPY --from=binary /libtensord_gloo.so /libtensord_gloo.so
COPY --from=binary /tensord.linked /tensord.linked
COPY deploy/docker/image_files /
RUN /image_files /tensord /tensord.linked /base /own /libtensord_gloo.so

FROM scratch
COPY --from=files /base /
COPY --from=files /own /
COPY --from=binary /libtensord_cuda.so /usr/lib/tensord/libtensord_cuda.so
ARG VERSION=0.1.0
ARG REVISION=
ARG CREATED=
LABEL org.opencontainers.image.title="tensord (CUDA)" \
      org.opencontainers.image.description="Serves and trains TorchScript models over gRPC, without PyTorch" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="docker.io/library/debian:bookworm-slim"
# NVIDIA's container runtime adds GPUs and the driver's libraries for them.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENV PATH=/usr/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 10001:10001
# HTTP (if enabled); gRPC; metrics, health and the status page.
EXPOSE 8000 8001 8002
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["tensord", "health"]
ENTRYPOINT ["tensord"]
CMD ["serve", "--model-repository=/models", "--grpc-address=0.0.0.0", "--metrics-address=0.0.0.0"]
