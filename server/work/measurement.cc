#include "server/work/measurement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {
namespace {

constexpr uint64_t kMaxCases = 4096;
constexpr uint32_t kMaxRepetitions = 1000;
constexpr uint64_t kSeed = 2026;
constexpr uint64_t kPatternBytes = uint64_t{1} << 20;

absl::Status InvalidSpec(std::string_view field, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, "BENCHMARK_SPEC", field, message);
}

// Integers of all magnitudes; floating-point numbers from -1 to 1.
template <class T>
std::vector<T> RandomElements(uint64_t count) {
  std::mt19937_64 random(kSeed);
  std::vector<T> elements(count);
  for (T& element : elements) {
    if constexpr (kIsFloating<T>) {
      element = static_cast<T>(std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -63));
    } else {
      element = static_cast<T>(random());
    }
  }
  return elements;
}

// Arrays that go in, each of num_items: the elements, and a recurrence's coefficients.
uint64_t NumInputs(const Spec& spec) {
  const auto* const scan = std::get_if<ScanSpec>(&spec);
  return scan != nullptr && scan->has_coefficients ? 2 : 1;
}

// What an element takes of the array with results, and of the one with their indices.
uint64_t ResultBytes(const Spec& spec) {
  const auto* const scan = std::get_if<ScanSpec>(&spec);
  return SizeOf(OutputOf(spec)) + (scan != nullptr && scan->return_indices ? SizeOf(scan->index_dtype) : 0);
}

// What it takes of all arrays on a side. The copy moves half of all bytes in and half out, so both sides have room for
// the larger one.
uint64_t SideBytes(const Spec& spec) { return std::max(NumInputs(spec) * SizeOf(InputOf(spec)), ResultBytes(spec)); }

// Sets the form that the benchmark asks for. Errors: INVALID_ARGUMENT if the primitive has none such.
template <class S>
absl::Status SetForm(const BenchmarkSpec& form, S* spec) {
  const auto has_none = [](std::string_view field, std::string_view what) {
    return InvalidSpec(field, StrCat(Name(S::kPrimitive), " has no ", what, ": leave one of them out"));
  };
  if constexpr (requires { spec->axis; }) {
    spec->axis = form.axis;
  } else {
    if (form.axis) return has_none("axis", "axis");
  }
  if constexpr (requires { spec->precision; }) {
    spec->precision = form.precision;
  } else {
    if (form.precision != Precision::kNative) return has_none("precision", "precision");
  }
  if constexpr (std::is_same_v<S, ScanSpec>) {
    spec->return_indices = form.return_indices;
  } else {
    if (form.return_indices) return has_none("return_indices", "indices of its results");
  }
  return absl::OkStatus();
}

// Fills the array with a random pattern, over and over. Synchronizes.
absl::Status Fill(Lane& lane, DType dtype, std::byte* d_array, uint64_t num_bytes) {
  return VisitDType(dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    uint64_t filled = std::min(num_bytes, kPatternBytes);
    const std::vector<T> pattern = RandomElements<T>(filled / sizeof(T));
    PREFIXD_RETURN_IF_ERROR(lane.CopyToDevice(d_array, pattern.data(), filled));
    while (filled < num_bytes) {
      const uint64_t more = std::min(filled, num_bytes - filled);
      PREFIXD_RETURN_IF_ERROR(lane.CopyOnDevice(d_array + filled, d_array, more, CopyTiming::kUntimed));
      filled += more;
    }
    return lane.Synchronize();
  });
}

// A case on a lane, with its memory.
class Subject {
 public:
  Subject(Lane& lane, const Work& work, uint64_t num_items)
      : lane_(lane),
        work_(work),
        num_items_(num_items),
        array_bytes_(MemoryBytes(num_items * work.item_bytes())),
        result_bytes_(MemoryBytes(num_items * work.shape().value_bytes)) {}

  absl::Status Allocate(uint64_t flush_bytes) {
    const uint64_t in_bytes = NumInputs(*SpecOf(work_.operation())) * array_bytes_;
    const uint64_t side_bytes = std::max(in_bytes, result_bytes_ + MemoryBytes(num_items_ * work_.shape().index_bytes));
    PREFIXD_ASSIGN_OR_RETURN(d_in_, lane_.Allocate(side_bytes));
    PREFIXD_ASSIGN_OR_RETURN(d_out_, lane_.Allocate(side_bytes));
    PREFIXD_ASSIGN_OR_RETURN(d_scalar_, lane_.Allocate(sizeof(ReduceState)));
    PREFIXD_ASSIGN_OR_RETURN(d_flush_, lane_.Allocate(flush_bytes));
    return Fill(lane_, InputOf(work_.operation()), d_in_.data(), in_bytes);
  }

  absl::StatusOr<StageTimes> RunWork() {
    PREFIXD_RETURN_IF_ERROR(FlushCaches());
    PREFIXD_RETURN_IF_ERROR(EnqueueWork());
    return Times();
  }

  // A copy that moves num_bytes: half of them in, half of them out.
  absl::StatusOr<StageTimes> RunCopy(uint64_t num_bytes) {
    PREFIXD_RETURN_IF_ERROR(FlushCaches());
    // In several steps where the work moves some bytes more than once.
    uint64_t left = std::max(num_bytes / 2, uint64_t{1});
    while (left > 0) {
      const uint64_t size = std::min<uint64_t>(left, d_out_.size_bytes());
      PREFIXD_RETURN_IF_ERROR(lane_.CopyOnDevice(d_out_.data(), d_in_.data(), size, CopyTiming::kTimed));
      left -= size;
    }
    return Times();
  }

 private:
  // It also keeps the device busy while what follows is launched, so that the launch is not in the time.
  absl::Status FlushCaches() {
    const uint64_t half = d_flush_.size_bytes() / 2;
    return lane_.CopyOnDevice(d_flush_.data() + half, d_flush_.data(), half, CopyTiming::kUntimed);
  }

  absl::Status EnqueueWork() {
    return work_.Enqueue(lane_, {.in = d_in_.data(),
                                 .coefficients = work_.shape().has_coefficients ? d_in_.data() + array_bytes_ : nullptr,
                                 .values = d_out_.data(),
                                 .indices = d_out_.data() + result_bytes_,
                                 .scalar = d_scalar_.data(),
                                 .num_items = num_items_});
  }

  absl::StatusOr<StageTimes> Times() {
    PREFIXD_RETURN_IF_ERROR(lane_.Synchronize());
    const StageTimes times = lane_.TakeStageTimes();
    if (!times.kernel_ns) return absl::InternalError("the device did not tell how long its work took");
    return times;
  }

  Lane& lane_;
  const Work& work_;
  const uint64_t num_items_;
  const uint64_t array_bytes_;
  const uint64_t result_bytes_;
  Buffer d_in_;   // The coefficients stand behind the elements.
  Buffer d_out_;  // The indices stand behind the results.
  Buffer d_scalar_;
  Buffer d_flush_;
};

// The sample that a share of `quantile` is not above. Needs: sorted, not empty.
int64_t Quantile(const std::vector<int64_t>& sorted, double quantile) {
  return sorted[static_cast<size_t>(std::lround(quantile * static_cast<double>(sorted.size() - 1)))];
}

std::string TooMany(uint32_t repetitions, int64_t pair_ns) {
  return StrCat(repetitions, " repetitions would hold a lane for longer than ", kMaxCaseNs / 1'000'000'000,
                " s: one, with its copy, took ", pair_ns / 1'000'000, " ms; ask for fewer");
}

absl::StatusOr<Measurement> MeasureSamples(Subject& subject, uint64_t num_items, uint32_t repetitions,
                                           const std::function<absl::Status()>& stop) {
  // The first of each warms up: code is loaded, memory is touched.
  PREFIXD_RETURN_IF_ERROR(stop());
  PREFIXD_ASSIGN_OR_RETURN(const StageTimes first, subject.RunWork());
  if (*first.kernel_ns > kMaxSampleNs) {
    return Measurement{.skipped = TooSlow(num_items, *first.kernel_ns), .median_ns = *first.kernel_ns};
  }
  PREFIXD_RETURN_IF_ERROR(stop());
  PREFIXD_ASSIGN_OR_RETURN(const StageTimes first_copy, subject.RunCopy(first.num_bytes));
  if (const int64_t pair_ns = *first.kernel_ns + *first_copy.kernel_ns; pair_ns > kMaxCaseNs / repetitions) {
    return Measurement{.skipped = TooMany(repetitions, pair_ns), .median_ns = *first.kernel_ns};
  }
  std::vector<int64_t> work_ns;
  std::vector<int64_t> copy_ns;
  for (uint32_t i = 0; i < repetitions; ++i) {
    PREFIXD_RETURN_IF_ERROR(stop());
    PREFIXD_ASSIGN_OR_RETURN(const StageTimes work, subject.RunWork());
    PREFIXD_RETURN_IF_ERROR(stop());
    PREFIXD_ASSIGN_OR_RETURN(const StageTimes copy, subject.RunCopy(first.num_bytes));
    work_ns.push_back(*work.kernel_ns);
    copy_ns.push_back(*copy.kernel_ns);
  }
  std::sort(work_ns.begin(), work_ns.end());
  std::sort(copy_ns.begin(), copy_ns.end());
  return Measurement{.p10_ns = Quantile(work_ns, 0.1),
                     .median_ns = Quantile(work_ns, 0.5),
                     .p90_ns = Quantile(work_ns, 0.9),
                     .copy_ns = Quantile(copy_ns, 0.5),
                     .num_bytes = first.num_bytes,
                     .launches = first.launches};
}

}  // namespace

absl::StatusOr<std::vector<BenchmarkCase>> Expand(const BenchmarkSpec& spec) {
  if (spec.primitives.empty()) return InvalidSpec("primitives", "name at least one of scan, reduce, compact");
  if (spec.dtypes.empty()) return InvalidSpec("dtypes", "name at least one element type");
  if (spec.sizes.empty()) return InvalidSpec("num_items", "name at least one size, in elements");
  if (std::find(spec.sizes.begin(), spec.sizes.end(), 0) != spec.sizes.end()) {
    return InvalidSpec("num_items", "a size is 0: there is nothing to measure");
  }
  if (spec.repetitions < 1 || spec.repetitions > kMaxRepetitions) {
    return InvalidSpec("repetitions",
                       StrCat("expected 1 to ", kMaxRepetitions, " repetitions, not ", spec.repetitions));
  }
  const std::vector<Op> sum = {Op::kSum};
  const std::vector<Algorithm> default_algorithm = {{}};
  const std::vector<Op>& ops = spec.ops.empty() ? sum : spec.ops;
  const std::vector<Algorithm>& algorithms = spec.algorithms.empty() ? default_algorithm : spec.algorithms;
  std::vector<BenchmarkCase> cases;
  for (const Primitive primitive : spec.primitives) {
    const size_t num_ops = HasOp(primitive) ? ops.size() : 1;
    for (const DType dtype : spec.dtypes) {
      for (size_t op = 0; op < num_ops; ++op) {
        for (const Algorithm& algorithm : algorithms) {
          for (const uint64_t num_items : spec.sizes) {
            if (cases.size() == kMaxCases) {
              return InvalidSpec("num_items",
                                 StrCat("these are more than ", kMaxCases, " combinations: ask for fewer"));
            }
            cases.push_back({SampleSpec(primitive, dtype, ops[op], algorithm), num_items});
            const auto set_form = [&](auto& one) { return SetForm(spec, &one); };
            PREFIXD_RETURN_IF_ERROR(std::visit(set_form, cases.back().spec));
          }
        }
      }
    }
  }
  return cases;
}

uint64_t ArrayBytes(const BenchmarkCase& what) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const uint64_t bytes_per_item = 2 * SideBytes(what.spec);
  return what.num_items > kMost / bytes_per_item ? kMost : what.num_items * bytes_per_item;
}

absl::StatusOr<std::unique_ptr<const Work>> MakeCase(const Device& device, const BenchmarkCase& what) {
  const Primitive primitive = PrimitiveOf(what.spec);
  const DType dtype = InputOf(what.spec);
  const std::optional<Op> op = OpOf(what.spec);
  if (op ? !ValidateOp(primitive, dtype, dtype, *op).ok() : !IsSupported(dtype)) {
    return absl::UnimplementedError(
        StrCat(Name(primitive), " does not serve ", op ? StrCat(Name(*op), " of ") : "", Name(dtype)));
  }
  PREFIXD_ASSIGN_OR_RETURN(auto work, MakeWork(device, OperationOf(what.spec)));
  PREFIXD_RETURN_IF_ERROR(work->CheckLength(what.num_items));
  return work;
}

std::string TooSlow(uint64_t num_items, int64_t sample_ns) {
  return StrCat("a sample would take longer than a second: one of ", num_items, " elements took ",
                sample_ns / 1'000'000, " ms");
}

absl::StatusOr<Measurement> Measure(const Device& device, Lane& lane, const BenchmarkCase& what, uint32_t repetitions,
                                    const std::function<absl::Status()>& stop) {
  PREFIXD_ASSIGN_OR_RETURN(const auto work, MakeCase(device, what));
  lane.TakeStageTimes();
  Subject subject(lane, *work, what.num_items);
  const absl::Status allocated = subject.Allocate(device.info().cache_flush_bytes);
  absl::StatusOr<Measurement> measured = allocated.ok() ? MeasureSamples(subject, what.num_items, repetitions, stop)
                                                        : absl::StatusOr<Measurement>(allocated);
  if (!measured.ok()) {
    // Its error, if it has one, is that of the measurement.
    lane.Synchronize().IgnoreError();
    lane.TakeStageTimes();
    return measured;
  }
  measured->what = {*SpecOf(work->operation()), what.num_items};
  return measured;
}

}  // namespace prefixd
