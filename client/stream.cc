#include "client/stream.h"

#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "client/client.h"
#include "client/convert.h"
#include "client/rpc.h"
#include "kernels/status.h"
#include "prefixd/v1/primitives.grpc.pb.h"

namespace prefixd::client {
namespace {

using ScanRpc = grpc::ClientReaderWriter<v1::ScanRequest, v1::ScanResponse>;
using CompactRpc = grpc::ClientReaderWriter<v1::CompactRequest, v1::CompactResponse>;
using ReduceRpc = grpc::ClientWriter<v1::ReduceRequest>;

void Set(Bytes bytes, std::string* data) { data->assign(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }

// Makes the messages of one stream: the spec and the id in the first, the position in each.
template <class Request>
class RequestMaker {
 public:
  RequestMaker(Request first, size_t item_bytes) : request_(std::move(first)), item_bytes_(item_bytes) {}

  const Request& Make(const Chunk& chunk) {
    if (started_) {
      request_.clear_spec();
      request_.clear_request_id();
    }
    started_ = true;
    auto* values = request_.mutable_values()->mutable_inline_();
    values->set_first_item(next_item_);
    Set(chunk.values, values->mutable_data());
    if constexpr (requires { request_.mutable_mask(); }) {
      if (!chunk.mask.empty()) {
        auto* mask = request_.mutable_mask()->mutable_inline_();
        mask->set_first_item(next_item_);
        Set(chunk.mask, mask->mutable_data());
      } else {
        request_.clear_mask();
      }
    }
    next_item_ += chunk.values.size() / item_bytes_;
    return request_;
  }

  // The spec, if no chunk has carried it yet: the server wants it even for an empty array.
  const Request* SpecAlone() const { return started_ ? nullptr : &request_; }

 private:
  Request request_;
  const size_t item_bytes_;
  bool started_ = false;
  uint64_t next_item_ = 0;
};

// What the streams have in common; Rpc is gRPC's stream.
template <class Spec, class Request, class Response, class Rpc>
class StreamImpl {
 public:
  StreamImpl(const Spec& spec, const CallOptions& call, Request first)
      : spec_(spec), requests_(std::move(first), SizeOf(spec.dtype)), context_(call, Deadline(call)) {}
  ~StreamImpl() {
    if (status_) return;
    Cancel();
    if constexpr (requires { rpc->Read(&response); }) {
      while (rpc->Read(&response)) continue;
    }
    rpc->Finish();
  }

  absl::Status Write(const Chunk& chunk) {
    PREFIXD_RETURN_IF_ERROR(internal::CheckChunk(chunk, spec_));
    if (rpc->Write(requests_.Make(chunk))) return absl::OkStatus();
    return absl::AbortedError("the call has ended; Finish says why");
  }
  void WritesDone() {
    // Where either fails the call has ended, and Finish says why.
    if (const Request* request = requests_.SpecAlone()) rpc->Write(*request);
    rpc->WritesDone();
  }
  absl::Status Finish() {
    if (!status_) status_ = FromWire(rpc->Finish());
    return *status_;
  }
  void Cancel() { context_.get()->TryCancel(); }
  grpc::ClientContext* context() { return context_.get(); }
  const Spec& spec() const { return spec_; }

  Response response;  // Of the last Read.
  std::unique_ptr<Rpc> rpc;

 protected:
  std::optional<absl::Status> status_;  // Once the call has ended.

 private:
  const Spec spec_;
  RequestMaker<Request> requests_;
  AttemptContext context_;
};

// Waits for a connection, so that a server that is just starting is found. What is wrong shows in the call itself.
std::unique_ptr<v1::PrefixService::Stub> Connect(const std::shared_ptr<grpc::Channel>& channel,
                                                 const ClientOptions& options, const CallOptions& call) {
  const absl::Time end = absl::Now() + std::min(options.retry_window, call.timeout);
  while (channel->GetState(/*try_to_connect=*/true) != GRPC_CHANNEL_READY) {
    // In short steps, so that a cancelled call does not wait.
    if (absl::Now() >= end || (call.cancellation != nullptr && call.cancellation->cancelled())) break;
    channel->WaitForConnected(absl::ToChronoTime(std::min(end, absl::Now() + absl::Milliseconds(50))));
  }
  return v1::PrefixService::NewStub(channel);
}

}  // namespace

// ---- Scan ----------------------------------------------------------------------------------------------------------
class ScanStream::Impl : public StreamImpl<ScanSpec, v1::ScanRequest, v1::ScanResponse, ScanRpc> {
  using StreamImpl::StreamImpl;
};

ScanStream::ScanStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ScanStream::~ScanStream() = default;
absl::Status ScanStream::Write(const Chunk& chunk) { return impl_->Write(chunk); }
void ScanStream::WritesDone() { impl_->WritesDone(); }
absl::Status ScanStream::Finish() { return impl_->Finish(); }
void ScanStream::Cancel() { impl_->Cancel(); }

bool ScanStream::Read(ScanReply* reply) {
  if (!impl_->rpc->Read(&impl_->response)) return false;
  *reply = FromWire(std::move(impl_->response));
  return true;
}

absl::StatusOr<std::unique_ptr<ScanStream>> Client::OpenScan(const ScanSpec& spec, const CallOptions& call) {
  v1::ScanRequest first;
  PREFIXD_ASSIGN_OR_RETURN(*first.mutable_spec(), ToWire(spec));
  first.set_request_id(call.request_id);
  auto impl = std::make_unique<ScanStream::Impl>(spec, call, std::move(first));
  impl->rpc = Connect(connection_->channel, connection_->options, call)->StreamScan(impl->context());
  return std::make_unique<ScanStream>(std::move(impl));
}

// ---- Compact -------------------------------------------------------------------------------------------------------
class CompactStream::Impl : public StreamImpl<CompactSpec, v1::CompactRequest, v1::CompactResponse, CompactRpc> {
  using StreamImpl::StreamImpl;
};

CompactStream::CompactStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompactStream::~CompactStream() = default;
absl::Status CompactStream::Write(const Chunk& chunk) { return impl_->Write(chunk); }
void CompactStream::WritesDone() { impl_->WritesDone(); }
absl::Status CompactStream::Finish() { return impl_->Finish(); }
void CompactStream::Cancel() { impl_->Cancel(); }

bool CompactStream::Read(CompactReply* reply) {
  if (!impl_->rpc->Read(&impl_->response)) return false;
  *reply = FromWire(std::move(impl_->response));
  return true;
}

absl::StatusOr<std::unique_ptr<CompactStream>> Client::OpenCompact(const CompactSpec& spec, const CallOptions& call) {
  v1::CompactRequest first;
  PREFIXD_ASSIGN_OR_RETURN(*first.mutable_spec(), ToWire(spec));
  first.set_request_id(call.request_id);
  auto impl = std::make_unique<CompactStream::Impl>(spec, call, std::move(first));
  impl->rpc = Connect(connection_->channel, connection_->options, call)->StreamCompact(impl->context());
  return std::make_unique<CompactStream>(std::move(impl));
}

// ---- Reduce --------------------------------------------------------------------------------------------------------
class ReduceStream::Impl : public StreamImpl<ReduceSpec, v1::ReduceRequest, v1::ReduceResponse, ReduceRpc> {
 public:
  using StreamImpl::StreamImpl;

  // gRPC hands over the one reply together with the status. It allows Finish beside a Write on another thread.
  bool Read(ReduceReply* reply) {
    if (status_ || !Finish().ok()) return false;
    auto read = FromWire(response, spec().output());
    if (!read.ok()) {
      status_ = read.status();
      return false;
    }
    *reply = *std::move(read);
    return true;
  }
};

ReduceStream::ReduceStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReduceStream::~ReduceStream() = default;
absl::Status ReduceStream::Write(const Chunk& chunk) { return impl_->Write(chunk); }
void ReduceStream::WritesDone() { impl_->WritesDone(); }
bool ReduceStream::Read(ReduceReply* reply) { return impl_->Read(reply); }
absl::Status ReduceStream::Finish() { return impl_->Finish(); }
void ReduceStream::Cancel() { impl_->Cancel(); }

absl::StatusOr<std::unique_ptr<ReduceStream>> Client::OpenReduce(const ReduceSpec& spec, const CallOptions& call) {
  v1::ReduceRequest first;
  PREFIXD_ASSIGN_OR_RETURN(*first.mutable_spec(), ToWire(spec));
  first.set_request_id(call.request_id);
  auto impl = std::make_unique<ReduceStream::Impl>(spec, call, std::move(first));
  impl->rpc = Connect(connection_->channel, connection_->options, call)->StreamReduce(impl->context(), &impl->response);
  return std::make_unique<ReduceStream>(std::move(impl));
}

}  // namespace prefixd::client
