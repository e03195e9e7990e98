#include "server/work/scan_carry.h"

#include <cstring>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "kernels/association.h"

namespace prefixd {
namespace {

// A version of this form, and what a carry is of.
std::string HeadOf(const Work& work) {
  const auto& scan = std::get<ScanSpec>(work.operation());
  const Algorithm& algorithm = scan.algorithm;
  std::string head = "PXC1";
  for (const int part : {static_cast<int>(scan.dtype), static_cast<int>(scan.output()), static_cast<int>(scan.op),
                         static_cast<int>(scan.kind), static_cast<int>(algorithm.strategy),
                         static_cast<int>(algorithm.tile_scan), static_cast<int>(algorithm.items_per_thread),
                         static_cast<int>(algorithm.padding), static_cast<int>(kNumericsVersion)}) {
    head.push_back(static_cast<char>(part));
  }
  if (scan.op == Op::kLinearRecurrence) {
    const Value coefficient = scan.coefficient.value_or(Value());
    head.push_back(static_cast<char>(scan.has_coefficients));
    head.append(reinterpret_cast<const char*>(&coefficient.bits), sizeof(coefficient.bits));
  }
  if (scan.precision != Precision::kNative) head.push_back(static_cast<char>(scan.precision));
  if (scan.return_indices) {
    head.push_back(static_cast<char>(scan.index_dtype));
    head.push_back(static_cast<char>(scan.last_index));
  }
  return head;
}

bool HasIndices(const Work& work) { return std::get<ScanSpec>(work.operation()).return_indices; }

}  // namespace

absl::Status CheckCarries(const Work& work) {
  const auto* const scan = std::get_if<ScanSpec>(&work.operation());
  if (scan != nullptr && scan->axis) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "spec.axis",
                 "the rows and columns of a matrix are whole arrays, so that nothing goes on behind them: leave the "
                 "axis or the carry out");
  }
  if (scan != nullptr && scan->segmented) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", scan->key_dtype ? "keys" : "segment_offsets",
                 "the scans of segments end with the array, so that none goes on behind it: leave the segments or the "
                 "carry out");
  }
  if (scan != nullptr && scan->include_initial) {
    return Error(
        absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "spec.include_initial",
        "an initial value stands in front of a whole array, and the carry is of a part: leave one of them out");
  }
  if (scan != nullptr && !scan->reverse) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "spec.reverse",
               "a reverse scan begins at the end, so that none goes on behind it: leave reverse or the carry out");
}

std::string EncodeCarry(const Work& work, const ScanCarry& carry) {
  std::string bytes = HeadOf(work);
  bytes.push_back(carry.value.empty() ? '\0' : '\1');
  if (HasIndices(work)) bytes.append(reinterpret_cast<const char*>(&carry.num_items), sizeof(carry.num_items));
  bytes += carry.value;
  bytes += carry.open_items;
  bytes += carry.open_coefficients;
  return bytes;
}

absl::StatusOr<ScanCarry> DecodeCarry(const Work& work, const Payload& bytes) {
  const auto error = [](std::string_view why) {
    return Error(absl::StatusCode::kInvalidArgument, "CARRY", "carry_in",
                 StrCat("this is no carry of a scan by the same spec", why,
                        ": pass on what came with return_carry, as it came"));
  };
  const std::string head = HeadOf(work);
  const uint64_t value_bytes = work.shape().carry_bytes;
  const uint64_t open_item_bytes = work.item_bytes() * (work.shape().has_coefficients ? 2 : 1);
  const uint64_t max_open = work.shape().depends_on_cuts ? (kGroupItems - 1) * open_item_bytes : 0;
  const uint64_t count_bytes = HasIndices(work) ? sizeof(ScanCarry::num_items) : 0;
  if (bytes.size() > head.size() + 1 + count_bytes + value_bytes + max_open) return error("; it is too long");
  const std::string text = bytes.ToString();
  if (text.size() <= head.size() || text.compare(0, head.size(), head) != 0) return error("");
  const char flag = text[head.size()];
  size_t at = head.size() + 1;
  ScanCarry carry;
  if (flag != '\0' && flag != '\1') return error("");
  if (text.size() - at < count_bytes) return error("; it is too short");
  std::memcpy(&carry.num_items, text.data() + at, count_bytes);
  at += count_bytes;
  if (flag == '\1') {
    if (text.size() - at < value_bytes) return error("; it is too short");
    carry.value = text.substr(at, value_bytes);
    at += value_bytes;
  }
  carry.open_items = text.substr(at);
  if (carry.open_items.size() > max_open || carry.open_items.size() % open_item_bytes != 0) return error("");
  if (work.shape().has_coefficients) {
    const size_t half = carry.open_items.size() / 2;
    carry.open_coefficients = carry.open_items.substr(half);
    carry.open_items.resize(half);
  }
  return carry;
}

}  // namespace prefixd
