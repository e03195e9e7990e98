#include "client/load/server_sender.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <variant>

#include "base/status.h"

namespace prefixd::load {
namespace {

using client::Bytes;

// Elements from 0 to 99, which every type has; half of them are above 49.
constexpr int kNumValues = 100;
constexpr int kHalf = 49;

std::string Elements(DType dtype, uint64_t num_items) {
  std::string block(num_items * SizeOf(dtype), '\0');
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::minstd_rand random;  // The same in every run: only time is measured.
    for (uint64_t i = 0; i < num_items; ++i) {
      const T value = static_cast<T>(random() % kNumValues);
      std::memcpy(block.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return block;
}

// Sets what has no default: a compact keeps the upper half.
template <class S>
void Complete(S*) {}
void Complete(CompactSpec* spec) {
  spec->predicate = VisitDType(spec->dtype, [](auto tag) {
    using T = typename decltype(tag)::type;
    return Predicate{Comparison::kGreater, Value::Of(static_cast<T>(kHalf))};
  });
}

// What the requests of an operation ask for: whatever its primitive does by default.
template <size_t kPrimitive = 0>
Spec SpecOf(const Operation& operation) {
  if constexpr (kPrimitive < std::variant_size_v<Spec>) {
    if (static_cast<size_t>(operation.primitive) != kPrimitive) return SpecOf<kPrimitive + 1>(operation);
    std::variant_alternative_t<kPrimitive, Spec> spec = {.dtype = operation.dtype};
    Complete(&spec);
    return spec;
  } else {
    FatalValue("SpecOf", operation.primitive);
  }
}

// An array of so many bytes that is its first block over and over.
class RepeatedSource : public client::ChunkSource {
 public:
  // item_bytes: the size of what Next counts.
  RepeatedSource(Bytes block, size_t item_bytes, uint64_t num_bytes)
      : block_(block), item_bytes_(item_bytes), num_bytes_(num_bytes) {}
  absl::StatusOr<client::Chunk> Next(size_t max_items) override {
    const uint64_t count = std::min<uint64_t>({max_items * item_bytes_, block_.size(), num_bytes_ - next_});
    next_ += count;
    return client::Chunk{.values = block_.first(count), .last = next_ == num_bytes_};
  }
  bool MayBlock() const override { return false; }
  bool Rewind() override {
    next_ = 0;
    return true;
  }

 private:
  const Bytes block_;
  const size_t item_bytes_;
  const uint64_t num_bytes_;
  uint64_t next_ = 0;
};

}  // namespace

ServerSender::ServerSender(absl::Span<const std::string> addresses, client::ClientOptions connection,
                           size_t num_channels, Target target, const std::vector<Operation>& operations,
                           absl::Duration timeout, client::Cancellation* cancellation)
    : target_(target), call_({.timeout = timeout, .cancellation = cancellation}) {
  connection.retry_window = absl::ZeroDuration();
  connection.own_connection = true;
  for (size_t i = 0; i < num_channels; ++i) {
    clients_.push_back(std::make_unique<client::Client>(addresses, connection));
  }
  for (const Operation& operation : operations) {
    const uint64_t block_items =
        std::min<uint64_t>(operation.num_items, client::kMaxPayloadBytes / SizeOf(operation.dtype));
    prepared_.push_back({operation, SpecOf(operation), Elements(operation.dtype, block_items)});
  }
}

Outcome ServerSender::Send(size_t caller, size_t operation) {
  absl::StatusOr<Outcome> outcome = SendTo(*clients_[caller % clients_.size()], prepared_[operation]);
  return outcome.ok() ? *std::move(outcome) : Outcome{.status = outcome.status()};
}

absl::StatusOr<Outcome> ServerSender::SendTo(client::Client& client, const Prepared& prepared) {
  const Operation& operation = prepared.operation;
  const uint64_t num_bytes = operation.bytes();
  const Bytes block = client::AsBytes(prepared.block);
  if (target_ == Target::kEcho) {
    RepeatedSource source(block, 1, num_bytes);
    PREFIXD_RETURN_IF_ERROR(client.Echo(source, call_));
    return Outcome{.num_bytes = 2 * num_bytes};
  }
  RepeatedSource source(block, SizeOf(operation.dtype), num_bytes);
  Outcome outcome = {.num_bytes = num_bytes};
  const auto receive = [&](client::Pieces values, client::Pieces indices) {
    outcome.num_bytes += client::NumBytes(values) + client::NumBytes(indices);
    return absl::OkStatus();
  };
  PREFIXD_ASSIGN_OR_RETURN(outcome.timing, client.RunChunks(prepared.spec, source, receive, call_));
  return outcome;
}

}  // namespace prefixd::load
