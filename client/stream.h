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
// Retry:   opening waits for a connection to any address, as a call does for a server that takes it (options.h). Once
//          open a stream is never retried, for the chunks are the caller's.
// Ends:    a stream that is destroyed before Finish is cancelled.
#ifndef PREFIXD_CLIENT_STREAM_H_
#define PREFIXD_CLIENT_STREAM_H_

#include "absl/status/status.h"
#include "client/chunk.h"

namespace prefixd::client {

// A stream whose replies are of type Reply: ScanStream and so on, which Client::OpenScan and so on make.
template <class Reply>
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  // Sends a chunk. Copies it, so its memory is the caller's again on return.
  // Shape:  any number of whole elements; above 1 MiB the server's message limit may be in the way.
  // Errors: INVALID_ARGUMENT and nothing is sent: LENGTH_NOT_MULTIPLE; MASK_LENGTH if a mask does not cover the chunk
  //         exactly; FIELD_CONFLICT if there is one beside a predicate.
  //         ABORTED if the call has ended: Finish says why.
  // Cost:   blocks while the server is not ready for more.
  virtual absl::Status Write(const Chunk& chunk) = 0;
  // Says that nothing more will be written.
  virtual void WritesDone() = 0;
  // Blocks for the next reply. False: there are no more, or the call has failed; Finish says which.
  virtual bool Read(Reply* reply) = 0;
  // How the call ended. Needs: Read returned false, and no other thread is in a method.
  // Errors: the server's code, message, reason and field.
  virtual absl::Status Finish() = 0;
  virtual void Cancel() = 0;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_STREAM_H_
