// Makes the streams that callers drive themselves (stream.h) of those in array_call.h. Private to the library.
#ifndef PREFIXD_CLIENT_CALLER_STREAM_H_
#define PREFIXD_CLIENT_CALLER_STREAM_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/array_call.h"
#include "client/attempts.h"
#include "client/stream.h"
#include "proto/timing.h"
#include "proto/wire_timing.h"

namespace prefixd::client {

// The timing of a response, of which the last one has it.
template <class Response>
std::optional<Timing> TimingOf(const Response& response) {
  return response.has_timing() ? std::optional(FromWire(response.timing())) : std::nullopt;
}

inline void Copy(const Payload& elements, std::string* to) {
  to->resize(elements.size());
  elements.CopyTo(to->data(), 0, elements.size());
}

// All of a caller's stream but Read: what a reply is made of differs from primitive to primitive.
template <class Spec, class Reply>
class CallerStream : public Stream<Reply> {
 public:
  explicit CallerStream(std::unique_ptr<ArrayStream<Spec>> stream) : stream_(std::move(stream)) {}

  absl::Status Write(const Chunk& chunk) override {
    static const Lender copies;  // A chunk is the caller's again when Write returns.
    return stream_->Write(chunk, copies);
  }
  void WritesDone() override { stream_->WritesDone(); }
  absl::Status Finish() override { return stream_->Finish(); }
  void Cancel() override { stream_->Cancel(); }

 protected:
  ArrayStream<Spec>& stream() { return *stream_; }

 private:
  const std::unique_ptr<ArrayStream<Spec>> stream_;
};

template <class CallerStream, class Spec>
absl::StatusOr<std::unique_ptr<CallerStream>> OpenStream(const Connection& connection, const Spec& spec,
                                                         const CallOptions& call) {
  PREFIXD_RETURN_IF_ERROR(connection.status());
  const absl::Time deadline = Deadline(call);
  const Server& server = ConnectedServer(connection, call, deadline);
  PREFIXD_ASSIGN_OR_RETURN(auto stream, ArrayStream<Spec>::Open(server, spec, call, deadline));
  return std::make_unique<CallerStream>(std::move(stream));
}

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CALLER_STREAM_H_
