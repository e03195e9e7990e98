// Streams of chunks, for callers who make an array piece by piece or want results while they still send.
//
//   auto stream = client.OpenScan({.dtype = DType::kF32, .op = Op::kSum});
//   std::thread writer([&] {
//     while (auto chunk = NextChunk()) {
//       if (!(*stream)->Write({.values = AsBytes<float>(*chunk)}).ok()) break;
//     }
//     (*stream)->WritesDone();
//   });
//   for (ScanReply reply; (*stream)->Read(&reply);) Use(reply.values);
//   writer.join();
//   absl::Status status = (*stream)->Finish();
//
// Threads: one thread may write while another reads; Cancel from any thread. Finish once both have ended.
// Writing a long array without reading its replies blocks for ever: the server stops reading when nobody takes what it
// has made.
// Retry:   opening waits for a connection, at most ClientOptions::retry_window. Once open a stream is never retried,
//          for the chunks are the caller's.
// Ends:    a stream that is destroyed before Finish is cancelled.
#ifndef PREFIXD_CLIENT_STREAM_H_
#define PREFIXD_CLIENT_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/spec.h"

namespace prefixd::client {

// The next elements of an array, and their mask where a mask selects: packed as the spec's mask_kind says.
// Owns: nothing.
struct Chunk {
  Bytes values;
  Bytes mask = {};
  bool last = false;  // Nothing follows. May be left false where that is not known.
};

class ScanStream {
 public:
  class Impl;
  explicit ScanStream(std::unique_ptr<Impl> impl);
  ~ScanStream();

  // Sends a chunk. Copies it, so its memory is the caller's again on return.
  // Shape:  any number of whole elements; above 1 MiB the server's message limit may be in the way.
  // Errors: INVALID_ARGUMENT (LENGTH_NOT_MULTIPLE) and nothing is sent; ABORTED if the call has ended: Finish says why.
  // Cost:   blocks while the server is not ready for more.
  absl::Status Write(const Chunk& chunk);
  // Says that nothing more will be written.
  void WritesDone();
  // Blocks for the next reply. False: there are no more, or the call has failed; Finish says which.
  bool Read(ScanReply* reply);
  // How the call ended. Needs: Read returned false, and no other thread is in a method.
  // Errors: the server's code, message, reason and field.
  absl::Status Finish();
  void Cancel();

 private:
  std::unique_ptr<Impl> impl_;
};

class CompactStream {
 public:
  class Impl;
  explicit CompactStream(std::unique_ptr<Impl> impl);
  ~CompactStream();

  // As ScanStream's. Errors: also INVALID_ARGUMENT (MASK_LENGTH) if the mask does not cover the chunk exactly, or
  // (FIELD_CONFLICT) if there is one beside a predicate.
  absl::Status Write(const Chunk& chunk);
  void WritesDone();
  bool Read(CompactReply* reply);
  absl::Status Finish();
  void Cancel();

 private:
  std::unique_ptr<Impl> impl_;
};

// As ScanStream, but with one reply, at the end: Read blocks until the call has ended.
class ReduceStream {
 public:
  class Impl;
  explicit ReduceStream(std::unique_ptr<Impl> impl);
  ~ReduceStream();

  absl::Status Write(const Chunk& chunk);
  void WritesDone();
  bool Read(ReduceReply* reply);
  absl::Status Finish();
  void Cancel();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_STREAM_H_
