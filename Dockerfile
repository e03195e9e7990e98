# prefixd as a container: built with the CUDA Toolkit, shipped as the tree that `cmake --install` makes.
#   docker build -t prefixd .
#   docker run --gpus all -p 127.0.0.1:50051:50051 prefixd
# Another CUDA: give other base images; any with the packages of deploy/install_deps.sh will do, and the run-time image
# must be at least as new as the one to build with. Without CUDA: --build-arg CUDA=OFF.
# A current gRPC: give the images of a suite, and the suite that has it, which becomes a further source of packages, as
#   --build-arg BUILD_IMAGE=debian:sid --build-arg RUNTIME_IMAGE=debian:sid-slim --build-arg GRPC_SUITE=experimental
ARG BUILD_IMAGE=docker.io/nvidia/cuda:13.0.1-devel-ubuntu24.04
ARG RUNTIME_IMAGE=docker.io/nvidia/cuda:13.0.1-base-ubuntu24.04

# What changes least comes first: a change of the source runs nothing again but the build.
FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY deploy/install_deps.sh deploy/
ARG GRPC_SUITE=
RUN deploy/install_deps.sh ${GRPC_SUITE:+--grpc-from "$GRPC_SUITE"} build
COPY CMakeLists.txt CMakePresets.json ./
COPY deploy/install.cmake deploy/install_libraries.cmake deploy/
COPY base base
COPY proto proto
COPY kernels kernels
COPY server server
COPY client client
ARG CUDA=ON
RUN cmake --preset dist "-DPREFIXD_CUDA=${CUDA}" && cmake --build --preset dist
COPY README.md CHANGELOG.md SECURITY.md LICENSE ./
COPY docs docs
RUN cmake --install build/dist --prefix /opt/prefixd --strip

FROM ${RUNTIME_IMAGE}
LABEL org.opencontainers.image.title="prefixd" \
      org.opencontainers.image.description="Scan, reduce and compact on NVIDIA GPUs over gRPC" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/prefixd /opt/prefixd
# The container is the boundary: inside it, all interfaces are served, and `docker run -p` decides who reaches them.
ENV PATH=/opt/prefixd/bin:$PATH \
    PREFIXD_LISTEN=[::]:50051 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
EXPOSE 50051
USER 10001:10001
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["prefixctl", "--timeout", "4s", "health"]
ENTRYPOINT ["prefixd"]
CMD []
