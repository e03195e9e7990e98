// Callers without the client library, for programs that measure what gRPC alone carries: prefixd and a bare server
// (bare_server.cc) get the same bytes from them.
// Threads: one.
#ifndef PREFIXD_TESTS_BENCH_STREAMS_H_
#define PREFIXD_TESTS_BENCH_STREAMS_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "prefixd/v1/primitives.pb.h"
#include "proto/array_message.h"
#include "proto/payload.h"
#include "tests/bench/server_process.h"

namespace prefixd {

inline constexpr size_t kChunkBytes = size_t{1} << 20;
inline constexpr char kStreamScan[] = "/prefixd.v1.PrefixService/StreamScan";
inline constexpr char kStreamReduce[] = "/prefixd.v1.PrefixService/StreamReduce";

// Needs: values.
double Median(std::vector<double> values);

// A connection of its own.
std::shared_ptr<grpc::Channel> Connect(const ServerProcess& peer);

// As many floats as fit size_bytes, random: no cache and no compressor can know them.
Payload RandomFloats(std::mt19937& random, size_t size_bytes);

template <class Request>
Request FirstRequest() {
  Request request;
  request.mutable_spec()->set_dtype(v1::DTYPE_F32);
  request.mutable_spec()->set_op(v1::OP_SUM);
  return request;
}

// 64 chunks, so that the caches hold none of them, and in front of them one with the spec.
template <class Request>
std::vector<grpc::ByteBuffer> StreamMessages() {
  std::mt19937 random(1);
  std::vector<grpc::ByteBuffer> messages;
  for (int i = 0; i <= 64; ++i) {
    messages.push_back(SerializeArrayMessage(i == 0 ? FirstRequest<Request>() : Request(),
                                             {{100, {}, RandomFloats(random, kChunkBytes)}}));
  }
  return messages;
}

struct Transfer {
  double gb_per_second = 0;
  double cpu_seconds_per_gb = 0;  // The server's.
};

// Streams at once, each over a connection of its own: each sends the first message and then the others in a circle,
// stream_bytes in all, and takes what comes back.
Transfer MeasureStreams(const ServerProcess& peer, const std::string& method,
                        const std::vector<grpc::ByteBuffer>& messages, int num_streams, size_t stream_bytes);

}  // namespace prefixd

#endif  // PREFIXD_TESTS_BENCH_STREAMS_H_
