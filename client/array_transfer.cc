#include "client/array_transfer.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "client/array_call.h"
#include "client/attempts.h"
#include "client/cancellation.h"
#include "client/chunk_call.h"
#include "client/rpc.h"
#include "prefixd/v1/arrays.pb.h"
#include "proto/wire_array.h"

namespace prefixd::client {
namespace {

constexpr uint64_t kMinSplitBytes = uint64_t{16} << 20;
constexpr uint64_t kMinShareBytes = uint64_t{8} << 20;
constexpr uint64_t kMaxLines = 8;

// Elements of the part that is moved.
struct Share {
  uint64_t first_item;
  uint64_t num_items;
};

// As many whole messages for each, so that all but the last one's end are full.
std::vector<Share> Shares(uint64_t num_items, size_t item_bytes) {
  const uint64_t count = NumLines(num_items * item_bytes);
  const uint64_t message_items = kMaxPayloadBytes / item_bytes;
  const uint64_t messages = (num_items + message_items - 1) / message_items;
  std::vector<Share> shares;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t first = messages * i / count * message_items;
    const uint64_t end = i + 1 == count ? num_items : messages * (i + 1) / count * message_items;
    shares.push_back({first, end - first});
  }
  return shares;
}

// Has one cancellation end a call when the caller's does, and when another share has failed.
class SharedEnd {
 public:
  explicit SharedEnd(Cancellation* callers) : callers_(callers) {
    if (callers_ != nullptr) id_ = callers_->Add([this] { end_.Cancel(); });
  }
  ~SharedEnd() {
    if (callers_ != nullptr) callers_->Remove(id_);
  }
  SharedEnd(const SharedEnd&) = delete;
  SharedEnd& operator=(const SharedEnd&) = delete;

  Cancellation* get() { return &end_; }

 private:
  Cancellation* const callers_;
  Cancellation end_;
  int id_ = 0;
};

// Whether it was the connection, or one call more, that the server had no room for.
bool IsOneTooMany(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

// move(server, share, call) moves a share. Returns the first error.
template <class Move>
absl::Status MoveShares(const Connection& connection, const std::vector<Share>& shares, const CallOptions& call,
                        Move move) {
  const std::vector<const Server*> lines = connection.Lines(shares.size());
  SharedEnd end(call.cancellation);
  CallOptions of_share = call;
  of_share.cancellation = end.get();
  std::mutex mutex;
  absl::Status error;  // The first. Guarded by the mutex, as what follows.
  std::vector<Share> left_over;
  const auto run = [&](size_t i) {
    absl::Status status = move(*lines[i], shares[i], of_share);
    if (status.ok()) return;
    const std::lock_guard lock(mutex);
    if (i > 0 && IsOneTooMany(status)) {
      left_over.push_back(shares[i]);
    } else if (error.ok()) {
      error = std::move(status);
      end.get()->Cancel();
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < shares.size(); ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const Share& share : left_over) {
    if (error.ok()) error = move(*lines[0], share, of_share);
  }
  return error;
}

v1::ArraySlice SliceOf(const ArrayInfo& array, uint64_t first_item, const Share& share) {
  return ToWire(
      ArraySlice{.name = array.name, .first_item = first_item + share.first_item, .num_items = share.num_items});
}

absl::Status WriteShare(const Server& server, const v1::ArraySlice& slice, Bytes values, size_t item_bytes,
                        const Lender& lender, const CallOptions& call, absl::Time deadline) {
  ByteStream stream(server, "/prefixd.v1.ArrayService/WriteArray", call, deadline);
  const size_t message_bytes = kMaxPayloadBytes / item_bytes * item_bytes;
  v1::WriteArrayRequest next;
  next.set_request_id(call.request_id);
  *next.mutable_array() = slice;
  next.set_announces_end(true);
  size_t sent_bytes = 0;
  bool sent_all = false;
  while (!sent_all) {
    const Bytes chunk = values.subspan(sent_bytes, std::min(message_bytes, values.size() - sent_bytes));
    next.set_end(sent_bytes + chunk.size() == values.size());
    if (!stream.Write(SerializeArrayMessage(
            next, {{v1::WriteArrayRequest::kValuesFieldNumber, sent_bytes / item_bytes, lender.Lend(chunk)}}))) {
      break;  // Finish says why.
    }
    sent_bytes += chunk.size();
    sent_all = next.end();
    next.Clear();
  }
  stream.WritesDone();
  const absl::Status status = stream.Finish();
  if (status.ok() && !sent_all) return absl::InternalError("the server ended the call before all elements were there");
  return ExplainDeadline(status, "the timeout passed before all elements were written");
}

absl::Status ReadShare(const Server& server, const v1::ArraySlice& slice, absl::Span<std::byte> values,
                       size_t item_bytes, const CallOptions& call, absl::Time deadline) {
  ByteStream stream(server, "/prefixd.v1.ArrayService/ReadArray", call, deadline);
  v1::ReadArrayRequest request;
  request.set_request_id(call.request_id);
  *request.mutable_array() = slice;
  stream.Write(SerializeArrayMessage(request, {}));  // Where it fails, Finish says why.
  stream.WritesDone();
  uint64_t got_bytes = 0;
  for (grpc::ByteBuffer bytes; stream.Read(&bytes);) {
    ArrayReply<v1::ReadArrayResponse> reply;
    absl::Status status = ParseReply(bytes, &reply);
    if (status.ok()) status = CheckWholeItems("values", reply.values, item_bytes);
    if (status.ok() && reply.values.size() > values.size() - got_bytes) {
      status = CheckLength("values", got_bytes + reply.values.size(), values.size());
    }
    if (!status.ok()) {
      stream.Fail(status);
      break;
    }
    reply.values.CopyTo(values.data() + got_bytes, 0, reply.values.size());
    got_bytes += reply.values.size();
  }
  const absl::Status status = stream.Finish();
  if (status.ok()) return CheckLength("values", got_bytes, values.size());
  return ExplainDeadline(status, "the timeout passed before all elements were read");
}

}  // namespace

size_t NumLines(uint64_t size_bytes) {
  return size_bytes < kMinSplitBytes ? 1 : std::min(kMaxLines, size_bytes / kMinShareBytes);
}

absl::Status WriteElements(const Connection& connection, const ArrayInfo& array, uint64_t first_item, Bytes values,
                           const CallOptions& call) {
  PREFIXD_RETURN_IF_ERROR(connection.status());
  const absl::Time deadline = Deadline(call);
  const size_t item_bytes = SizeOf(array.dtype);
  const std::vector<Share> shares = Shares(values.size() / item_bytes, item_bytes);
  const Lender lender(connection);
  return RunOnce(connection, call, deadline, [&](const Server& /*server*/) {
    return MoveShares(connection, shares, call, [&](const Server& line, const Share& share, const CallOptions& own) {
      return WriteShare(line, SliceOf(array, first_item, share),
                        values.subspan(share.first_item * item_bytes, share.num_items * item_bytes), item_bytes, lender,
                        own, deadline);
    });
  });
}

absl::Status ReadElements(const Connection& connection, const ArrayInfo& array, uint64_t first_item,
                          absl::Span<std::byte> values, const CallOptions& call) {
  PREFIXD_RETURN_IF_ERROR(connection.status());
  const absl::Time deadline = Deadline(call);
  const size_t item_bytes = SizeOf(array.dtype);
  const std::vector<Share> shares = Shares(values.size() / item_bytes, item_bytes);
  Attempts attempts(connection, call, deadline);
  return Retry(attempts, [&](const Server& /*server*/) -> Outcome {
    return {MoveShares(connection, shares, call,
                       [&](const Server& line, const Share& share, const CallOptions& own) {
                         return ReadShare(line, SliceOf(array, first_item, share),
                                          values.subspan(share.first_item * item_bytes, share.num_items * item_bytes),
                                          item_bytes, own, deadline);
                       }),
            true};
  });
}

}  // namespace prefixd::client
