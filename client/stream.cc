#include "client/stream.h"

#include <string>
#include <utility>

#include "client/array_call.h"
#include "client/client.h"
#include "client/convert.h"
#include "client/rpc.h"

namespace prefixd::client {
namespace {

// A chunk is the caller's again when Write returns.
const Lender& Copies() {
  static const Lender copies;
  return copies;
}

void Copy(const Payload& elements, std::string* to) {
  to->resize(elements.size());
  elements.CopyTo(to->data(), 0, elements.size());
}

}  // namespace

// ---- Scan ----------------------------------------------------------------------------------------------------------
class ScanStream::Impl {
 public:
  std::unique_ptr<ArrayStream<ScanSpec>> stream;
};

ScanStream::ScanStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ScanStream::~ScanStream() = default;
absl::Status ScanStream::Write(const Chunk& chunk) { return impl_->stream->Write(chunk, Copies()); }
void ScanStream::WritesDone() { impl_->stream->WritesDone(); }
absl::Status ScanStream::Finish() { return impl_->stream->Finish(); }
void ScanStream::Cancel() { impl_->stream->Cancel(); }

bool ScanStream::Read(ScanReply* reply) {
  ArrayReply<v1::ScanResponse> read;
  if (!impl_->stream->Read(&read)) return false;
  Copy(read.values, &reply->values);
  reply->timing = TimingOf(read.message);
  return true;
}

absl::StatusOr<std::unique_ptr<ScanStream>> Client::OpenScan(const ScanSpec& spec, const CallOptions& call) {
  auto impl = std::make_unique<ScanStream::Impl>();
  PREFIXD_ASSIGN_OR_RETURN(impl->stream,
                           ArrayStream<ScanSpec>::Open(connection_->channel, connection_->options, spec, call));
  return std::make_unique<ScanStream>(std::move(impl));
}

// ---- Compact -------------------------------------------------------------------------------------------------------
class CompactStream::Impl {
 public:
  std::unique_ptr<ArrayStream<CompactSpec>> stream;
};

CompactStream::CompactStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompactStream::~CompactStream() = default;
absl::Status CompactStream::Write(const Chunk& chunk) { return impl_->stream->Write(chunk, Copies()); }
void CompactStream::WritesDone() { impl_->stream->WritesDone(); }
absl::Status CompactStream::Finish() { return impl_->stream->Finish(); }
void CompactStream::Cancel() { impl_->stream->Cancel(); }

bool CompactStream::Read(CompactReply* reply) {
  ArrayReply<v1::CompactResponse> read;
  if (!impl_->stream->Read(&read)) return false;
  Copy(read.values, &reply->values);
  Copy(read.indices, &reply->indices);
  reply->count = read.message.count();
  reply->timing = TimingOf(read.message);
  return true;
}

absl::StatusOr<std::unique_ptr<CompactStream>> Client::OpenCompact(const CompactSpec& spec, const CallOptions& call) {
  auto impl = std::make_unique<CompactStream::Impl>();
  PREFIXD_ASSIGN_OR_RETURN(impl->stream,
                           ArrayStream<CompactSpec>::Open(connection_->channel, connection_->options, spec, call));
  return std::make_unique<CompactStream>(std::move(impl));
}

// ---- Reduce --------------------------------------------------------------------------------------------------------
class ReduceStream::Impl {
 public:
  std::unique_ptr<ArrayStream<ReduceSpec>> stream;
  bool read = false;
};

ReduceStream::ReduceStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReduceStream::~ReduceStream() = default;
absl::Status ReduceStream::Write(const Chunk& chunk) { return impl_->stream->Write(chunk, Copies()); }
void ReduceStream::WritesDone() { impl_->stream->WritesDone(); }
absl::Status ReduceStream::Finish() { return impl_->stream->Finish(); }
void ReduceStream::Cancel() { impl_->stream->Cancel(); }

// The reply counts if the call ends well. gRPC allows Finish beside a Write on another thread.
bool ReduceStream::Read(ReduceReply* reply) {
  if (std::exchange(impl_->read, true)) return false;
  ArrayReply<v1::ReduceResponse> last;
  impl_->stream->Read(&last);
  if (!impl_->stream->Finish().ok()) return false;
  auto value = FromWire(last.message, impl_->stream->spec().output());
  if (!value.ok()) {
    impl_->stream->Fail(value.status());
    return false;
  }
  *reply = *std::move(value);
  return true;
}

absl::StatusOr<std::unique_ptr<ReduceStream>> Client::OpenReduce(const ReduceSpec& spec, const CallOptions& call) {
  auto impl = std::make_unique<ReduceStream::Impl>();
  PREFIXD_ASSIGN_OR_RETURN(impl->stream,
                           ArrayStream<ReduceSpec>::Open(connection_->channel, connection_->options, spec, call));
  return std::make_unique<ReduceStream>(std::move(impl));
}

}  // namespace prefixd::client
