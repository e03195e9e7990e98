#include "server/call/benchmark.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "server/call/request_id.h"

namespace prefixd {

Benchmark::Benchmark(ServerContext* context, CallInfo call, BenchmarkTransport* transport)
    : context_(context), transport_(transport), call_(context, std::move(call)) {}

bool Benchmark::Start() {
  absl::Status status = Admit();
  waits_ = status.ok();
  call_.Watch([this] { return Look(); }, [this](absl::Status why) { GiveUp(std::move(why)); });
  if (status.ok()) return true;
  End(std::move(status));
  return false;
}

void Benchmark::OnRequest(absl::StatusOr<BenchmarkSpec> spec) {
  if (!waits_.exchange(false)) return;  // It was given up, and has ended.
  call_.Begin(spec.ok() ? spec->request_id : "");
  if (absl::Status status = Begin(spec); !status.ok()) {
    End(std::move(status));
  } else {
    SubmitNext();
  }
}

void Benchmark::OnReadEnd() {
  if (!waits_.exchange(false)) return;
  End(Error(absl::StatusCode::kInvalidArgument, "MESSAGE_MISSING", "",
            "the call ended without a message: say what to measure"),
      /*is_cut_short=*/true);
}

Watched::Sight Benchmark::Look() const {
  if (waits_) return {.waits_for = WaitsFor::kFirstMessage};
  const uint64_t num_writes = num_writes_;
  return {.waits_for = num_writes % 2 == 1 || ended_ ? WaitsFor::kReader : WaitsFor::kNothing, .progress = num_writes};
}

void Benchmark::GiveUp(absl::Status why) {
  if (waits_.exchange(false)) {
    End(std::move(why));
  } else {
    call_.GiveUp(std::move(why));
  }
}

absl::Status Benchmark::Admit() {
  if (!context_->benchmarks->enabled) {
    return Error(
        absl::StatusCode::kPermissionDenied, "BENCHMARK_OFF", "",
        "this server runs no benchmarks: it was started with --no-benchmark, or without --benchmark where other "
        "hosts can connect");
  }
  return call_.Admit();
}

absl::Status Benchmark::Begin(const absl::StatusOr<BenchmarkSpec>& spec) {
  BenchmarkControl& control = *context_->benchmarks;
  PREFIXD_RETURN_IF_ERROR(spec.status());
  PREFIXD_RETURN_IF_ERROR(CheckRequestId(spec->request_id));
  PREFIXD_ASSIGN_OR_RETURN(cases_, Expand(*spec));
  repetitions_ = spec->repetitions;
  PREFIXD_RETURN_IF_ERROR(call_.Charge(kMaxReplyPayloadBytes));
  if (control.running.exchange(true)) {
    return Error(absl::StatusCode::kResourceExhausted, "BENCHMARK_RUNNING", "",
                 "another benchmark is running, and two would measure each other: retry when it has ended");
  }
  holds_control_ = true;
  return absl::OkStatus();
}

void Benchmark::SubmitNext() {
  context_->lanes->Submit(NextTask(), [this](BorrowedLane& lane) { MeasureNext(lane); });
}

TaskInfo Benchmark::NextTask() const {
  const BenchmarkCase& what = cases_[next_];
  TaskInfo info = {.size = TaskSize::kMeasurement, .caller = FairCallerOf(call_.info())};
  const auto work = MakeCase(*context_->device, what);
  if (!work.ok()) return info;  // It will be skipped.
  if ((*work)->is_yardstick()) info.size = TaskSize::kYardstick;
  info.estimated_ns = std::min((*work)->EstimateNs(what.num_items), kMaxSampleNs) * 2 * repetitions_;
  return info;
}

void Benchmark::MeasureNext(BorrowedLane& lane) {
  const BenchmarkCase& what = cases_[next_];
  absl::StatusOr<Measurement> measured = MeasureOrSkip(*lane.lane, what);
  call_.Observe(measured.status());
  if (!measured.ok()) {
    End(std::move(measured).status());
    return;
  }
  ++next_;
  ++num_writes_;
  transport_->Write(*measured);
}

absl::StatusOr<Measurement> Benchmark::MeasureOrSkip(Lane& lane, const BenchmarkCase& what) {
  PREFIXD_RETURN_IF_ERROR(Wanted());
  absl::Status fits = MakeCase(*context_->device, what).status();
  fits.Update(CheckBytes(what));
  fits.Update(CheckTime(what));
  Admission::Ticket host_bytes;
  if (fits.ok()) fits = AdmitHostBytes(what, &host_bytes);
  absl::StatusOr<Measurement> measured =
      fits.ok() ? Measure(*context_->device, lane, what, repetitions_, [this] { return Wanted(); })
                : absl::StatusOr<Measurement>(std::move(fits));
  if (measured.ok()) last_ = Measurement{.what = what, .median_ns = measured->median_ns};
  switch (measured.status().code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:  // ALGORITHM_OFF.
    case absl::StatusCode::kResourceExhausted:
      return Measurement{.what = what, .skipped = std::string(measured.status().message())};
    default:
      return measured;
  }
}

// Nothing takes less time for more elements: an estimate in proportion is a low one.
absl::Status Benchmark::CheckTime(const BenchmarkCase& what) const {
  if (!last_) return absl::OkStatus();
  BenchmarkCase shorter = what;
  shorter.num_items = last_->what.num_items;
  if (shorter != last_->what || what.num_items <= shorter.num_items) return absl::OkStatus();
  const double growth = static_cast<double>(what.num_items) / static_cast<double>(shorter.num_items);
  if (static_cast<double>(last_->median_ns) * growth <= static_cast<double>(kMaxSampleNs)) return absl::OkStatus();
  return absl::ResourceExhaustedError(TooSlow(shorter.num_items, last_->median_ns));
}

absl::Status Benchmark::CheckBytes(const BenchmarkCase& what) const {
  const uint64_t bytes = ArrayBytes(what);
  const uint64_t free_bytes = context_->device->FreeMemoryBytes();
  if (bytes > context_->benchmarks->max_bytes) {
    return absl::ResourceExhaustedError(StrCat("its arrays need ", bytes, " bytes, above the limit of ",
                                               context_->benchmarks->max_bytes, " (--max-benchmark-bytes)"));
  }
  if (free_bytes != 0 && bytes > free_bytes / 2) {
    return absl::ResourceExhaustedError(
        StrCat("its arrays need ", bytes, " bytes, above half of the ", free_bytes, " that the device has free"));
  }
  return absl::OkStatus();
}

absl::Status Benchmark::AdmitHostBytes(const BenchmarkCase& what, Admission::Ticket* bytes) const {
  const DeviceInfo& device = context_->device->info();
  // On a card only a pattern is the host's, and the benchmark was admitted with that.
  if (device.direct_bytes != DeviceInfo::kHostMemory) return absl::OkStatus();
  const uint64_t needed = ArrayBytes(what) + device.cache_flush_bytes;
  const uint64_t limit = context_->admission->limits().bytes;
  if (needed > limit) {
    return absl::ResourceExhaustedError(StrCat("its arrays need ", needed, " bytes of the host's memory, above the ",
                                               limit, " for requests (--max-request-bytes)"));
  }
  // There is one benchmark at a time, so it is a caller of its own, who may have all that is free.
  const Caller benchmark = {.name = "benchmark", .connection = "", .is_address = false};
  PREFIXD_ASSIGN_OR_RETURN(*bytes, context_->admission->Admit(benchmark, Admission::Kind::kQuestion));
  return bytes->Charge(needed);
}

absl::Status Benchmark::Wanted() const {
  PREFIXD_RETURN_IF_ERROR(call_.stop().Check());
  PREFIXD_RETURN_IF_ERROR(context_->admission->closed());
  if (!context_->benchmarks->stopping) return absl::OkStatus();
  return Error(absl::StatusCode::kUnavailable, "DRAINING", "", "the server is stopping: measure another one");
}

void Benchmark::OnWriteDone(bool ok) {
  ++num_writes_;
  if (!ok) {
    End(call_.Cancel());
  } else if (next_ == cases_.size()) {
    End(absl::OkStatus());
  } else {
    SubmitNext();
  }
}

void Benchmark::End(absl::Status status, bool is_cut_short) {
  // A caller who hears of the end may begin the next one at once.
  const Result& result =
      call_.Finish({.result = {.status = std::move(status)}, .kept_bytes = 0, .is_cut_short = is_cut_short});
  if (holds_control_) context_->benchmarks->running = false;
  ended_ = true;
  transport_->Finish(result);
}

}  // namespace prefixd
