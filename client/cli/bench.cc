#include "client/cli/bench.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "client/cli/bench_report.h"
#include "client/cli/file.h"
#include "client/cli/interrupt.h"
#include "client/cli/number.h"
#include "client/cli/progress.h"
#include "client/cli/report.h"
#include "client/client.h"
#include "kernels/status.h"

namespace prefixd::cli {
namespace {

constexpr uint64_t kRangeFactor = 4;

std::optional<uint64_t> ParseCount(std::string_view digits) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return count;
}

// "1000" or "2^20"; above 0.
std::optional<uint64_t> ParseSize(std::string_view text) {
  const size_t caret = text.find('^');
  const std::optional<uint64_t> base = ParseCount(text.substr(0, caret));
  const std::optional<uint64_t> exponent = caret == std::string_view::npos ? 1 : ParseCount(text.substr(caret + 1));
  if (!base || !exponent || *base == 0 || *exponent > 64) return std::nullopt;
  uint64_t size = 1;
  for (uint64_t i = 0; i < *exponent; ++i) {
    if (__builtin_mul_overflow(size, *base, &size)) return std::nullopt;
  }
  return size;
}

template <class T>
bool Contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

template <class T>
void AddOnce(T value, std::vector<T>* values) {
  if (!Contains(*values, value)) values->push_back(value);
}

uint64_t CountOf(const client::BenchmarkSpec& spec) {
  uint64_t count = 0;
  for (const Primitive primitive : spec.primitives) {
    count += primitive == Primitive::kCompact ? 1 : std::max<size_t>(spec.ops.size(), 1);
  }
  return count * spec.dtypes.size() * std::max<size_t>(spec.algorithms.size(), 1) * spec.num_items.size();
}

// Where results go, one after the other, and what is left to be said at the end.
class Output {
 public:
  Output(const GlobalFlags& global, const BenchFlags& flags, const client::BenchmarkSpec& spec,
         const client::ServerInfo& info)
      : json_(global.json), csv_(flags.csv), info_(info), table_(spec, info) {}

  absl::Status Begin() { return Print(json_ ? "" : csv_ ? CsvHead() : table_.Head()); }

  absl::Status Add(const client::BenchmarkResult& result) {
    results_.push_back(result);
    return Print(json_ ? "" : csv_ ? CsvRow(result) : table_.Row(result));
  }

  absl::Status End(OutputFile* plot) {
    const absl::Time now = absl::Now();
    if (json_) PREFIXD_RETURN_IF_ERROR(PrintJson(ToJson(results_, info_, now)));
    if (plot == nullptr || !measured()) return absl::OkStatus();
    PREFIXD_RETURN_IF_ERROR(plot->Write(ToSvg(ToPlot(results_, info_, now))));
    PREFIXD_RETURN_IF_ERROR(plot->Close());
    return plot->Commit();
  }

  bool measured() const {
    return std::any_of(results_.begin(), results_.end(), [](const auto& result) { return result.GbPerS() > 0; });
  }

 private:
  static absl::Status Print(const std::string& text) { return text.empty() ? absl::OkStatus() : PrintText(text); }

  const bool json_;
  const bool csv_;
  const client::ServerInfo& info_;
  BenchTable table_;
  std::vector<client::BenchmarkResult> results_;
};

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParseSizes(std::string_view text) {
  std::vector<uint64_t> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    const std::string_view word = text.substr(begin, text.find(',', begin) - begin);
    begin += word.size() + 1;
    const size_t dots = word.find("..");
    const std::optional<uint64_t> first = ParseSize(word.substr(0, dots));
    const std::optional<uint64_t> last = dots == std::string_view::npos ? first : ParseSize(word.substr(dots + 2));
    if (!first || !last || *first > *last) {
      return absl::InvalidArgumentError(StrCat("'", Shown(word),
                                               "' is no size: expected a number of elements above 0, such as 1000 or "
                                               "2^20, or a range such as 2^10..2^20"));
    }
    for (uint64_t size = *first; size < *last; size *= kRangeFactor) {
      sizes.push_back(size);
      if (size > *last / kRangeFactor) break;
    }
    sizes.push_back(*last);
  }
  return sizes;
}

client::BenchmarkSpec BenchSpec(const BenchFlags& flags, const client::ServerInfo& info) {
  client::BenchmarkSpec spec = {.primitives = flags.primitives,
                                .dtypes = flags.dtypes,
                                .ops = flags.ops,
                                .algorithms = flags.algorithms,
                                .num_items = flags.sizes,
                                .repetitions = flags.repetitions};
  for (const client::Capability& listed : info.capabilities) {
    if (!Contains(flags.primitives, listed.primitive)) continue;
    if (flags.dtypes.empty()) AddOnce(listed.dtype, &spec.dtypes);
    if (flags.ops.empty() && listed.op) AddOnce(*listed.op, &spec.ops);
  }
  for (const client::AlgorithmInfo& row : info.algorithms) {
    if (!flags.algorithms.empty() || !Contains(flags.primitives, row.primitive)) continue;
    for (const uint8_t items : {0, 4}) {
      for (const bool padding : {false, true}) {
        if ((items > 0 && !row.has_items_per_thread) || (padding && !row.has_padding)) continue;
        AddOnce({row.algorithm.strategy, row.algorithm.tile_scan, items, padding}, &spec.algorithms);
      }
    }
  }
  return spec;
}

bool IsUnasked(const client::BenchmarkResult& result, const BenchFlags& flags, const client::ServerInfo& info) {
  const bool all_dtypes = flags.dtypes.empty();
  const bool all_ops = flags.ops.empty();
  const bool all_algorithms = flags.algorithms.empty();
  if (result.times || (!all_dtypes && !all_ops && !all_algorithms)) return false;
  const Algorithm without_knobs = {result.algorithm.strategy, result.algorithm.tile_scan};
  return std::none_of(info.capabilities.begin(), info.capabilities.end(), [&](const client::Capability& listed) {
    return listed.primitive == result.primitive && listed.dtype == result.dtype &&
           (!(all_ops || all_algorithms) || listed.op == result.op) &&
           (!all_algorithms || listed.algorithm == without_knobs);
  });
}

absl::Status RunBench(const GlobalFlags& global, const BenchFlags& flags) {
  if (flags.csv && global.json) return UsageError("--csv and --json both need standard output for themselves");
  if (flags.plot == "-") return UsageError("--plot needs the name of a file: standard output is the table's");
  CancelOnInterrupt interrupt;
  const absl::Time deadline = absl::Now() + global.timeout.value_or(absl::InfiniteDuration());
  const auto call = [&] {
    return client::CallOptions{.timeout = deadline - absl::Now(), .cancellation = &interrupt.cancellation()};
  };
  // Before the work: that it can't be written is better known now.
  std::unique_ptr<OutputFile> plot;
  if (flags.plot) {
    PREFIXD_ASSIGN_OR_RETURN(plot, OutputFile::Open(*flags.plot));
  }
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const client::ServerInfo info, client.GetServerInfo(call()));
  const client::BenchmarkSpec spec = BenchSpec(flags, info);
  Output output(global, flags, spec, info);
  Progress progress(ResultTo::kFile);  // Rows may share the screen with it: each wipes it first.
  const uint64_t total = CountOf(spec);
  uint64_t done = 0;
  const auto show = [&](const client::BenchmarkResult& result) {
    progress.Wipe();
    if (done == 0) PREFIXD_RETURN_IF_ERROR(output.Begin());
    if (!IsUnasked(result, flags, info)) PREFIXD_RETURN_IF_ERROR(output.Add(result));
    if (++done < total) progress.Show(StrCat("measured ", done, " of ", total));
    return absl::OkStatus();
  };
  progress.Show(StrCat("measured 0 of ", total));
  absl::Status status = client.RunBenchmark(spec, show, call());
  progress.Wipe();
  if (interrupt.cancellation().cancelled() && !status.ok()) {
    status = absl::CancelledError(StrCat("interrupted when ", done, " of ", total, " were measured"));
  }
  if (done > 0 && !IsClosedPipe(status)) status.Update(output.End(plot.get()));
  if (status.ok() && !output.measured()) {
    return absl::FailedPreconditionError("nothing was measured: the server skipped all that it was asked for");
  }
  return status;
}

}  // namespace prefixd::cli
