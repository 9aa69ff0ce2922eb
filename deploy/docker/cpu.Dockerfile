# tensord for processors. scripts/image builds and tests it; by hand, with BuildKit, from the root of the sources:
#   docker build -f deploy/docker/cpu.Dockerfile -t tensord .
# The last stage has no shell and no package manager: Debian's C library, OpenSSL and certificates, and tensord.
ARG BASE=debian:bookworm-slim
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

FROM tools AS build
WORKDIR /src
COPY . .
COPY --from=onednn /onednn build/onednn
ARG CCACHE_REMOTE_STORAGE=
ARG JOBS=
RUN --mount=type=cache,id=tensord-ccache,target=/root/.cache/ccache \
    CMAKE_BUILD_PARALLEL_LEVEL=${JOBS} scripts/build static \
 && install -D --strip build/static/server/tensord /tensord \
 && install -D --strip build/static/lib/tensord/libtensord_gloo.so /libtensord_gloo.so \
 && deploy/docker/linked_packages build/static/build.ninja /tensord.linked

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
ARG VERSION=0.1.0
ARG REVISION=
ARG CREATED=
LABEL org.opencontainers.image.title="tensord" \
      org.opencontainers.image.description="Serves and trains TorchScript models over gRPC, without PyTorch" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="docker.io/library/debian:bookworm-slim"
ENV PATH=/usr/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 10001:10001
# HTTP (if enabled); gRPC; metrics, health and the status page.
EXPOSE 8000 8001 8002
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["tensord", "health"]
ENTRYPOINT ["tensord"]
CMD ["serve", "--model-repository=/models", "--grpc-address=0.0.0.0", "--metrics-address=0.0.0.0"]
