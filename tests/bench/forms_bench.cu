// The kernels' other forms beside their plain ones, in one process: a line for each figure.
//
//   forms_bench [FILTER]     only the forms that contain FILTER, and their plain ones
//
// 2^28 elements. A plain form goes forward, through arrays that are aligned. The lines of its other forms have one more
// column, their share over the plain one's, so that 1 is as fast for the bytes that must move. A compaction's plain
// form is by predicate, by byte mask beside masks, and of f32 beside f16, i16 and u8; a reduction's is a sum. Each time
// is the median of 21 by events, the L2 cache flushed before each by copying 128 MiB. "share" is the time of a
// device-to-device copy that moves as many bytes, from the same run, over the figure's.
#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "tests/bench/cuda_bench.h"
#include "tests/bench/fill.cuh"

namespace {

using prefixd::Allocate;
using prefixd::AllocateRandom;
using prefixd::CompactArgs;
using prefixd::DifferenceArgs;
using prefixd::DType;
using prefixd::kDTypeOf;
using prefixd::Op;
using prefixd::ReduceArgs;
using prefixd::ScanArgs;
using prefixd::Selector;

constexpr uint64_t kItems = uint64_t{1} << 28;

// By how many elements arrays begin past where they would be aligned.
struct Shift {
  const char* name;
  size_t in;
  size_t out;
};
constexpr size_t kMaxShift = 2;
constexpr Shift kShifts[] = {
    {", in + 1, out + 1", 1, 1}, {", in + 1", 1, 0}, {", out + 1", 0, 1}, {", in + 1, out + 2", 1, 2}};

struct Form {
  std::string name;
  uint64_t num_bytes;  // Read and written.
  std::function<absl::Status()> enqueue;
};

// Arrays of all forms of one type.
template <class T>
struct Arrays {
  Arrays() {
    prefixd::FillByteMask<<<2048, 256>>>(byte_mask.get(), kItems + kMaxShift);
    prefixd::FillBitMask<<<2048, 256>>>(bit_mask.get(), kItems / 8);
    prefixd::Check(cudaDeviceSynchronize());
  }

  prefixd::DeviceArray<T> in = AllocateRandom<T>(kItems + kMaxShift);
  prefixd::DeviceArray<T> out = Allocate<T>(kItems + kMaxShift);
  prefixd::DeviceArray<uint64_t> indices = Allocate<uint64_t>(kItems);
  prefixd::DeviceArray<uint8_t> byte_mask = Allocate<uint8_t>(kItems + kMaxShift);
  prefixd::DeviceArray<uint8_t> bit_mask = Allocate<uint8_t>(kItems / 8);
};

class Bench {
 public:
  explicit Bench(std::string filter) : filter_(std::move(filter)) {}

  template <class T>
  void Run() {
    const Arrays<T> arrays;
    Scans(arrays);
    Reduces(arrays);
    Differences(arrays);
    Compacts(arrays);
  }

  // Compactions of narrow types beside those of f32.
  void NarrowCompacts() {
    const Arrays<float> f32;
    const Arrays<int16_t> i16;
    const Arrays<uint8_t> u8;
    const Arrays<prefixd::Float16> f16;
    for (const Selector selector : {Selector::kPredicate, Selector::kByteMask}) {
      Compare(CompactForm(CompactOf(f32, selector)), {CompactForm(CompactOf(i16, selector), ", beside f32"),
                                                      CompactForm(CompactOf(u8, selector), ", beside f32"),
                                                      CompactForm(CompactOf(f16, selector), ", beside f32")});
    }
  }

 private:
  template <class T>
  void Scans(const Arrays<T>& arrays) {
    ScanArgs args = {.dtype = kDTypeOf<T>, .in = arrays.in.get(), .out = arrays.out.get(), .num_items = kItems};
    args.init = prefixd::ScanStart(args.op, args.dtype, args.kind);
    ShiftedAndReversed<T>(args, [this](const ScanArgs& form, const char* how) { return ScanForm(form, how); });
  }

  template <class T>
  void Reduces(const Arrays<T>& arrays) {
    const auto args_of = [&](Op op, size_t shift) {
      ReduceArgs args = {.dtype = kDTypeOf<T>, .op = op, .in = arrays.in.get() + shift, .num_items = kItems};
      args.init = {prefixd::Neutral(op, args.StateDType()), prefixd::ReduceState::kNothing};
      args.state_out = reinterpret_cast<prefixd::ReduceState*>(card_.d_scratch());
      return args;
    };
    // Minima and maxima come with where they stand.
    Compare(ReduceForm(args_of(Op::kSum, 0)), {ReduceForm(args_of(Op::kSum, 1), ", in + 1"),
                                               ReduceForm(args_of(Op::kMin, 0)), ReduceForm(args_of(Op::kMax, 0))});
  }

  template <class T>
  void Differences(const Arrays<T>& arrays) {
    DifferenceArgs args = {.dtype = kDTypeOf<T>, .in = arrays.in.get(), .out = arrays.out.get(), .num_items = kItems};
    ShiftedAndReversed<T>(args,
                          [this](const DifferenceArgs& form, const char* how) { return DifferenceForm(form, how); });
  }

  // make(args, how): a form.
  template <class T, class Args, class Make>
  void ShiftedAndReversed(const Args& args, const Make& make) {
    std::vector<Form> forms;
    for (const Shift& shift : kShifts) forms.push_back(make(Shifted<T>(args, &Args::out, shift), shift.name));
    Args reversed = args;
    reversed.reverse = true;
    forms.push_back(make(reversed, ", reversed"));
    Compare(make(args, ""), forms);
  }

  template <class T>
  void Compacts(const Arrays<T>& arrays) {
    const CompactArgs by_predicate = CompactOf(arrays, Selector::kPredicate);
    std::vector<Form> forms;
    for (const Shift& shift : kShifts) {
      forms.push_back(CompactForm(Shifted<T>(by_predicate, &CompactArgs::values, shift), shift.name));
    }
    for (const DType index_dtype : {DType::kU32, DType::kU64}) {
      CompactArgs args = by_predicate;
      args.indices = arrays.indices.get();
      args.index_dtype = index_dtype;
      forms.push_back(CompactForm(args, ", indices " + std::string(prefixd::Name(index_dtype))));
    }
    Compare(CompactForm(by_predicate), forms);

    const CompactArgs by_byte_mask = CompactOf(arrays, Selector::kByteMask);
    CompactArgs shifted = Shifted<T>(by_byte_mask, &CompactArgs::values, {"", 1, 1});
    shifted.mask = arrays.byte_mask.get() + 1;
    Compare(CompactForm(by_byte_mask),
            {CompactForm(CompactOf(arrays, Selector::kBitMask)), CompactForm(shifted, ", in + 1, out + 1, mask + 1")});
  }

  template <class T, class Args>
  static Args Shifted(Args args, void* Args::*out, const Shift& shift) {
    args.in = static_cast<const T*>(args.in) + shift.in;
    args.*out = static_cast<T*>(args.*out) + shift.out;
    return args;
  }

  template <class T>
  CompactArgs CompactOf(const Arrays<T>& arrays, Selector selector) const {
    CompactArgs args;
    args.dtype = kDTypeOf<T>;
    args.selector = selector;
    args.comparison = prefixd::Comparison::kGreater;
    args.value = prefixd::Value::Of(std::is_unsigned_v<T> ? static_cast<T>(std::numeric_limits<T>::max() / 2) : T{0});
    args.mask = selector == Selector::kBitMask ? arrays.bit_mask.get() : arrays.byte_mask.get();
    args.in = arrays.in.get();
    args.num_items = kItems;
    args.values = arrays.out.get();
    args.count = reinterpret_cast<uint64_t*>(card_.d_scratch());
    return args;
  }

  static std::string Text(std::string_view text) { return std::string(text); }

  Form ScanForm(const ScanArgs& args, const std::string& how = "") {
    return {"scan " + Text(Name(args.dtype)) + how, kItems * ItemBytes(args),
            [=, this] { return card_.lane().Scan(args); }};
  }
  Form ReduceForm(const ReduceArgs& args, const std::string& how = "") {
    return {"reduce " + Text(Name(args.op)) + " " + Text(Name(args.dtype)) + how, kItems * SizeOf(args.dtype),
            [=, this] { return card_.lane().Reduce(args); }};
  }
  Form DifferenceForm(const DifferenceArgs& args, const std::string& how = "") {
    return {"difference " + Text(Name(args.dtype)) + how, 2 * kItems * SizeOf(args.dtype),
            [=, this] { return card_.lane().Difference(args); }};
  }
  // Half of the elements are kept, give or take a millionth.
  Form CompactForm(const CompactArgs& args, const std::string& how = "") {
    const std::string selector = args.selector == Selector::kPredicate  ? "predicate"
                                 : args.selector == Selector::kByteMask ? "byte mask"
                                                                        : "bit mask";
    const uint64_t index_bytes = args.indices != nullptr ? SizeOf(args.index_dtype) : 0;
    return {"compact by " + selector + " " + Text(Name(args.dtype)) + how,
            kItems * SizeOf(args.dtype) + MaskBytes(args) + kItems / 2 * (SizeOf(args.dtype) + index_bytes),
            [=, this] { return card_.lane().Compact(args); }};
  }

  void Compare(const Form& plain, const std::vector<Form>& forms) {
    for (const Form& form : forms) {
      if (form.name.find(filter_) == std::string::npos) continue;
      if (!plain_shares_.contains(plain.name)) plain_shares_[plain.name] = Print(plain, std::nullopt);
      Print(form, plain_shares_[plain.name]);
    }
  }

  double Print(const Form& form, std::optional<double> plain_share) {
    return card_.Print(form.name, kItems, card_.TimeOfLane(form.enqueue), form.num_bytes, plain_share);
  }

  const std::string filter_;
  prefixd::BenchCard card_{"last column: over the plain form's share"};
  std::map<std::string, double> plain_shares_;
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench(argc > 1 ? argv[1] : "");
  bench.Run<float>();
  bench.Run<int16_t>();
  bench.Run<uint8_t>();
  bench.Run<double>();
  bench.NarrowCompacts();
}
