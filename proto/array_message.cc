#include "proto/array_message.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"
#include "prefixd/v1/arrays.pb.h"

namespace prefixd {
namespace {

// Below this a copy costs less than it does to hold the owner.
constexpr uint64_t kMaxCopiedBytes = uint64_t{16} << 10;

// The wire format, https://protobuf.dev/programming-guides/encoding.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
constexpr uint32_t Tag(uint32_t field, WireType type) { return field << 3 | type; }
constexpr uint32_t kFirstItemTag = Tag(1, kVarint);  // In an InlineChunk.
// inline in an Operand or a ResultArray, and data in an InlineChunk.
constexpr uint32_t kInnerField = 100;

// A place in a message that lies in slices. Cheap to copy.
class Cursor {
 public:
  Cursor(const std::vector<grpc::Slice>& slices, uint64_t size_bytes) : slice_(slices.data()), remaining_(size_bytes) {}

  // Bytes to the end of the message.
  uint64_t remaining() const { return remaining_; }

  // A varint of at most max_bytes, before `stop` bytes remain.
  bool ReadVarint(size_t max_bytes, uint64_t stop, uint64_t* value) {
    *value = 0;
    for (size_t i = 0; i < max_bytes && remaining_ > stop; ++i) {
      while (offset_ == slice_->size()) NextSlice();
      const uint8_t byte = slice_->begin()[offset_++];
      --remaining_;
      *value |= uint64_t{byte & 0x7fU} << (7 * i);
      if (byte < 0x80) return true;
    }
    return false;
  }

  // The next size_bytes, part by part. Needs: they are there.
  template <class OnPart>
  void Read(uint64_t size_bytes, OnPart on_part) {
    remaining_ -= size_bytes;
    while (size_bytes > 0) {
      while (offset_ == slice_->size()) NextSlice();
      const uint64_t count = std::min<uint64_t>(size_bytes, slice_->size() - offset_);
      on_part(std::string_view(reinterpret_cast<const char*>(slice_->begin()) + offset_, count));
      offset_ += count;
      size_bytes -= count;
    }
  }

 private:
  void NextSlice() {
    ++slice_;
    offset_ = 0;
  }

  const grpc::Slice* slice_;
  size_t offset_ = 0;  // In *slice_.
  uint64_t remaining_;
};

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// The levels of a message, outermost first: an array field in it, inline in that, data in that.
enum Level { kMessage, kArray, kChunk };

// Whether the field leads to a payload. An array field that the message does not have is unknown, as any other.
bool IsSplit(const google::protobuf::Descriptor& type, Level level, uint64_t field) {
  if (level != kMessage) return field == kInnerField;
  return field >= kFirstArrayField && field <= kLastArrayField && type.FindFieldByNumber(static_cast<int>(field));
}

// What became of a message that was to be split. Unusual: protobuf has to look at the whole of it. So what is split has
// one meaning only, and protobuf reads the rest.
enum class Outcome : uint8_t { kSplit, kUnusual, kTooMuchBesideArrays };

// Splits the fields up to where `stop` bytes remain: payloads into *payloads, the rest, as a message of its own, into
// *rest. `array`: the field that this is inside of; at the outermost level 0.
Outcome Split(const google::protobuf::Descriptor& type, Cursor& in, uint64_t stop, Level level, int array,
              ArrayPayloads* payloads, std::string* rest) {
  constexpr size_t kMaxTagBytes = 5;  // As protobuf's parser has it, also for lengths.
  constexpr int kMaxVarintBytes = 10;
  uint64_t arrays_seen = 0;       // A bit each. A second one would have to be merged with the first.
  bool has_other_source = false;  // An array elsewhere.
  const auto has_room = [&](uint64_t num_bytes) {
    return num_bytes <= kMaxBytesBesideArrays && rest->size() <= kMaxBytesBesideArrays - num_bytes;
  };
  while (in.remaining() > stop) {
    Cursor start = in;
    uint64_t tag = 0;
    uint64_t ignored = 0;
    uint64_t length = 0;
    if (!in.ReadVarint(kMaxTagBytes, stop, &tag) || tag > std::numeric_limits<uint32_t>::max()) {
      return Outcome::kUnusual;
    }
    const uint64_t field = tag >> 3;
    switch (tag & 7) {
      case kVarint:
        if (!in.ReadVarint(kMaxVarintBytes, stop, &ignored)) return Outcome::kUnusual;
        break;
      case kFixed64:
        length = sizeof(uint64_t);
        break;
      case kFixed32:
        length = sizeof(uint32_t);
        break;
      case kBytes:
        if (!in.ReadVarint(kMaxTagBytes, stop, &length)) return Outcome::kUnusual;
        break;
      default:
        return Outcome::kUnusual;
    }
    if (length > in.remaining() - stop) return Outcome::kUnusual;
    if ((tag & 7) != kBytes || !IsSplit(type, level, field)) {
      // A source beside inline: the later one would win.
      if (level == kArray && field < kInnerField) {
        if (arrays_seen != 0) return Outcome::kUnusual;
        has_other_source = true;
      }
      const uint64_t num_bytes = start.remaining() - in.remaining() + length;
      if (!has_room(num_bytes)) return Outcome::kTooMuchBesideArrays;
      in.Read(length, [](std::string_view) {});
      start.Read(num_bytes, [&](std::string_view part) { rest->append(part); });
      continue;
    }
    const uint64_t seen = uint64_t{1} << (kLastArrayField - field);
    if ((arrays_seen & seen) != 0 || has_other_source) return Outcome::kUnusual;
    arrays_seen |= seen;
    if (level == kChunk) {
      in.Read(length, [&](std::string_view part) { (*payloads)[array].Append(part); });
      continue;
    }
    std::string inner;
    const Level inner_level = level == kMessage ? kArray : kChunk;
    const int inner_array = level == kMessage ? static_cast<int>(field) : array;
    const Outcome outcome = Split(type, in, in.remaining() - length, inner_level, inner_array, payloads, &inner);
    if (outcome != Outcome::kSplit) return outcome;
    if (!has_room(2 * kMaxTagBytes + inner.size())) return Outcome::kTooMuchBesideArrays;
    AppendVarint(tag, rest);
    AppendVarint(inner.size(), rest);
    rest->append(inner);
  }
  return Outcome::kSplit;
}

// The bytes of a message that came. Their release wakes gRPC where it waits for memory, and gRPC 1.51 crashes if it is
// woken on a thread that is in none of its calls. The destructor of a ByteBuffer is such a call, that of a Slice is
// not: so the buffer has the last hold of every slice.
struct ReceivedBytes {
  explicit ReceivedBytes(const grpc::ByteBuffer& bytes) : buffer(bytes) {}

  grpc::ByteBuffer buffer;          // Declared first, goes last.
  std::vector<grpc::Slice> slices;  // The buffer's.
};

// A slice over memory that `owner` keeps.
grpc::Slice Borrow(std::string_view part, const Payload::Owner& owner) {
  const auto release = [](void* held) { delete static_cast<Payload::Owner*>(held); };
  return grpc::Slice(const_cast<char*>(part.data()), part.size(), release, new Payload::Owner(owner));
}

// Moves the payloads out of a message that protobuf has parsed as a whole.
void TakePayloads(google::protobuf::Message* message, ArrayPayloads* payloads) {
  // The message in that field of `outer`; null: none.
  const auto inner = [](google::protobuf::Message* outer, int number) -> google::protobuf::Message* {
    const google::protobuf::FieldDescriptor* const field = outer->GetDescriptor()->FindFieldByNumber(number);
    const google::protobuf::Reflection* const reflection = outer->GetReflection();
    return field != nullptr && reflection->HasField(*outer, field) ? reflection->MutableMessage(outer, field) : nullptr;
  };
  for (int field = kFirstArrayField; field <= kLastArrayField; ++field) {
    google::protobuf::Message* const array = inner(message, field);
    google::protobuf::Message* const chunk = array == nullptr ? nullptr : inner(array, kInnerField);
    if (chunk == nullptr) continue;
    (*payloads)[field] = Payload(std::move(*static_cast<v1::InlineChunk*>(chunk)->mutable_data()));
    payloads->num_copied_bytes += (*payloads)[field].size();
  }
}

}  // namespace

absl::Status ParseArrayMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message* message,
                               ArrayPayloads* payloads) {
  const auto malformed = [&](std::string_view why) {
    return Error(absl::StatusCode::kInvalidArgument, "MALFORMED", "",
                 StrCat("the message is no ", message->GetDescriptor()->full_name(), why));
  };
  constexpr std::string_view kOtherContract = ": check that it was made from the same contract";
  const auto received = std::make_shared<ReceivedBytes>(bytes);
  if (!bytes.Dump(&received->slices).ok()) return malformed(": it came in part only");
  Cursor cursor(received->slices, bytes.Length());
  std::string rest;
  const Outcome outcome = Split(*message->GetDescriptor(), cursor, 0, kMessage, 0, payloads, &rest);
  if (outcome == Outcome::kSplit) {
    for (int field = kFirstArrayField; field <= kLastArrayField; ++field) {
      if (!(*payloads)[field].empty()) (*payloads)[field].SetOwner(received);
    }
    return message->ParseFromString(rest) ? absl::OkStatus() : malformed(kOtherContract);
  }
  *payloads = ArrayPayloads();
  if (outcome == Outcome::kTooMuchBesideArrays) {
    return malformed(StrCat(" that is taken: it has more than ", kMaxBytesBesideArrays, " bytes beside its arrays"));
  }
  if (bytes.Length() > kMaxBytesBesideArrays) {
    return malformed(StrCat(" that is taken: in one of more than ", kMaxBytesBesideArrays,
                            " bytes every array comes once, whole, and no field is a group"));
  }
  grpc::ByteBuffer whole = bytes;
  grpc::ProtoBufferReader reader(&whole);
  if (!reader.status().ok() || !message->ParseFromZeroCopyStream(&reader)) return malformed(kOtherContract);
  TakePayloads(message, payloads);
  return absl::OkStatus();
}

absl::Status ParseMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  ArrayPayloads none;
  return ParseArrayMessage(bytes, message, &none);
}

absl::Status ParseMessage(const grpc::ByteBuffer& bytes, uint64_t max_bytes, google::protobuf::Message* message) {
  const auto malformed = [&](std::string_view why) {
    return Error(absl::StatusCode::kInvalidArgument, "MALFORMED", "",
                 StrCat("the message is no ", message->GetDescriptor()->full_name(), why));
  };
  if (bytes.Length() > max_bytes) {
    return malformed(StrCat(" that is taken: it has ", bytes.Length(), " bytes, more than ", max_bytes));
  }
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return malformed(": it came in part only");
  std::string whole;
  for (const grpc::Slice& slice : slices) whole.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  if (message->ParseFromString(whole)) return absl::OkStatus();
  return malformed(": check that it was made from the same contract");
}

grpc::ByteBuffer SerializeArrayMessage(const google::protobuf::Message& message,
                                       absl::Span<const OutgoingArray> arrays) {
  std::vector<grpc::Slice> slices;
  std::string head = message.SerializeAsString();
  for (const OutgoingArray& array : arrays) {
    std::string chunk;  // The InlineChunk up to its payload.
    if (array.first_item) {
      AppendVarint(kFirstItemTag, &chunk);
      AppendVarint(*array.first_item, &chunk);
    }
    if (!array.data.empty()) {
      AppendVarint(Tag(kInnerField, kBytes), &chunk);
      AppendVarint(array.data.size(), &chunk);
    }
    std::string operand;  // Up to the chunk.
    AppendVarint(Tag(kInnerField, kBytes), &operand);
    AppendVarint(chunk.size() + array.data.size(), &operand);
    AppendVarint(Tag(array.field, kBytes), &head);
    AppendVarint(operand.size() + chunk.size() + array.data.size(), &head);
    head += operand;
    head += chunk;
    if (array.data.size() <= kMaxCopiedBytes) {
      for (const std::string_view part : array.data.parts()) head += part;
      continue;
    }
    slices.emplace_back(std::exchange(head, {}));
    for (const std::string_view part : array.data.parts()) slices.push_back(Borrow(part, array.data.owner()));
  }
  if (!head.empty() || slices.empty()) slices.emplace_back(head);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace prefixd
