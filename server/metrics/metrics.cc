#include "server/metrics/metrics.h"

#include <prometheus/gauge.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <iterator>
#include <memory>
#include <sstream>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/status.h"

namespace prefixd {
namespace {

using prometheus::BuildCounter;
using prometheus::MetricFamily;
using prometheus::MetricType;

// From a small request on an idle device to a stream of many gigabytes.
const prometheus::Histogram::BucketBoundaries kSecondsBuckets = {
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};

// All callers who have no series of their own. No address, and no name of ASCII letters, reads like it.
constexpr char kOtherCallers[] = "(others)";

// A number of the server's that nobody counts here.
MetricFamily Reading(const char* name, const char* help, MetricType type, double value) {
  prometheus::ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {.name = name, .help = help, .type = type, .metric = {metric}};
}

MetricFamily Gauge(const char* name, const char* help, uint64_t value) {
  return Reading(name, help, MetricType::Gauge, static_cast<double>(value));
}

MetricFamily Counter(const char* name, const char* help, uint64_t value) {
  return Reading(name, help, MetricType::Counter, static_cast<double>(value));
}

MetricFamily DroppedLines(const ServerState& state) {
  MetricFamily family = {.name = "prefixd_log_lines_dropped_total",
                         .help =
                             "Lines of the log that were never written: too many of their kind in a second, or "
                             "standard error is read too slowly",
                         .type = MetricType::Counter,
                         .metric = {}};
  for (const auto& [cause, lines] :
       {std::pair("rate", state.log_lines_over_rate), std::pair("queue", state.log_lines_overrun)}) {
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    metric.label = {{.name = "cause", .value = cause}};
    metric.counter.value = static_cast<double>(lines);
  }
  return family;
}

std::vector<MetricFamily> Families(const ServerState& state) {
  return {
      Gauge("prefixd_requests_in_flight", "Requests that are worked on", state.requests),
      Gauge("prefixd_requests_in_flight_limit", "The most of them (--max-requests)", state.max_requests),
      Gauge("prefixd_request_memory_bytes", "Memory that requests in flight are charged for", state.request_bytes),
      Gauge("prefixd_request_memory_limit_bytes", "The most of it (--max-request-bytes)", state.max_request_bytes),
      Gauge("prefixd_arrays", "Resident arrays", state.arrays),
      Gauge("prefixd_arrays_limit", "The most of them (--max-arrays)", state.max_arrays),
      Gauge("prefixd_array_memory_bytes", "Device memory of resident arrays", state.array_bytes),
      Gauge("prefixd_array_memory_limit_bytes", "The most of it (--max-array-bytes)", state.max_array_bytes),
      Gauge("prefixd_staging_memory_bytes", "Pinned memory in use: the lanes' own, and replies that are sent from it",
            state.staging_bytes),
      Gauge("prefixd_staging_memory_limit_bytes", "Pinned memory (--staging-bytes, and the lanes' own)",
            state.max_staging_bytes),
      Gauge("prefixd_device_memory_bytes", "Memory of the device", state.device_memory_bytes),
      Gauge("prefixd_device_memory_free_bytes", "Memory of the device that was free when a lane last looked",
            state.device_memory_free_bytes),
      Gauge("prefixd_connections", "Open connections of callers", state.connections),
      Gauge("prefixd_connections_limit", "The most of them (--max-connections, or what open files allow)",
            state.max_connections),
      Counter("prefixd_connections_accepted_total", "Connections that were accepted", state.connections_accepted),
      Counter("prefixd_connections_refused_total",
              "Connections that were closed at once: there were too many, or their address is shut out",
              state.connections_refused),
      Counter(
          "prefixd_connections_ended_total",
          "Connections that were closed: their callers cancelled too many calls, did not read refusals, or sent what "
          "belongs to no call",
          state.connections_ended),
      Gauge("prefixd_lanes", "Device lanes (--lanes)", state.lanes),
      Gauge("prefixd_lanes_busy", "Lanes that run a task", state.lanes_busy),
      Gauge("prefixd_lane_tasks_waiting", "Tasks that no lane runs yet", state.tasks_waiting),
      DroppedLines(state),
      Gauge("prefixd_memory_in_use_bytes", "Memory that the allocator has handed out", state.in_use_bytes),
      Gauge("process_resident_memory_bytes", "Resident memory of the process", state.resident_bytes),
  };
}

}  // namespace

Metrics::Metrics(const BuildInfo& build, uint64_t max_callers, std::function<ServerState()> look)
    : max_callers_(max_callers),
      look_(std::move(look)),
      requests_(BuildCounter()
                    .Name("prefixd_requests_total")
                    .Help("Requests that ended, by gRPC status code and reason")
                    .Register(registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("prefixd_request_duration_seconds")
                   .Help("From a request's first message until its result was ready to be sent")
                   .Register(registry_)),
      received_bytes_(BuildCounter()
                          .Name("prefixd_received_bytes_total")
                          .Help("Array data that came in requests that ended")
                          .Register(registry_)),
      sent_bytes_(BuildCounter()
                      .Name("prefixd_sent_bytes_total")
                      .Help("Array data that was sent in replies to requests that ended")
                      .Register(registry_)),
      elements_(BuildCounter()
                    .Name("prefixd_elements_total")
                    .Help("Elements that requests that ended have worked on")
                    .Register(registry_)) {
  if (max_callers_ > 0) {
    caller_requests_ = &BuildCounter()
                            .Name("prefixd_caller_requests_total")
                            .Help("Requests that ended, by caller (--metrics-callers) and gRPC status code")
                            .Register(registry_);
  }
  prometheus::BuildGauge()
      .Name("prefixd_build_info")
      .Help("What is served: always 1")
      .Register(registry_)
      .Add({{"version", build.version},
            {"numerics_version", std::to_string(build.numerics_version)},
            {"device", build.device},
            {"cpu_isa", build.cpu_isa}})
      .Set(1);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  prometheus::BuildGauge()
      .Name("process_start_time_seconds")
      .Help("When the server started, since the epoch")
      .Register(registry_)
      .Add({})
      .Set(now.count());
}

Metrics::Method& Metrics::MethodOf(const std::string& name) {
  if (const auto it = methods_.find(name); it != methods_.end()) return it->second;
  const prometheus::Labels labels = {{"method", name}};
  return methods_[name] = {.seconds = &seconds_.Add(labels, kSecondsBuckets),
                           .received_bytes = &received_bytes_.Add(labels),
                           .sent_bytes = &sent_bytes_.Add(labels),
                           .elements = &elements_.Add(labels),
                           .requests = {}};
}

prometheus::Counter* Metrics::RequestsOf(const std::string& name, Method* method, const absl::Status& status) {
  const Outcome outcome = {status.code(), status.ok() ? "" : ErrorReason(status)};
  prometheus::Counter*& counter = method->requests[outcome];
  if (counter == nullptr) {
    counter = &requests_.Add(
        {{"method", name}, {"code", absl::StatusCodeToString(outcome.first)}, {"reason", outcome.second}});
  }
  return counter;
}

prometheus::Counter* Metrics::RequestsOf(const CallInfo& call, absl::StatusCode code) {
  std::string name = absl::CHexEscape(call.caller.name);  // Bytes that are no UTF-8 would spoil the page.
  if (callers_.size() >= max_callers_ && !callers_.contains(name)) name = kOtherCallers;
  prometheus::Counter*& counter = callers_[name][code];
  if (counter == nullptr) {
    counter = &caller_requests_->Add({{"caller", name}, {"code", absl::StatusCodeToString(code)}});
  }
  return counter;
}

void Metrics::Count(const CallRecord& record) {
  const std::string& name = record.call.method;
  Method* method = nullptr;
  prometheus::Counter* requests = nullptr;
  prometheus::Counter* caller_requests = nullptr;
  {
    MutexLock lock(mutex_);
    method = &MethodOf(name);
    requests = RequestsOf(name, method, record.result.status);
    if (max_callers_ > 0) caller_requests = RequestsOf(record.call, record.result.status.code());
  }
  const Timing& timing = record.result.timing;
  requests->Increment();
  if (caller_requests != nullptr) caller_requests->Increment();
  method->received_bytes->Increment(static_cast<double>(record.num_bytes_in));
  method->sent_bytes->Increment(static_cast<double>(record.num_bytes_out));
  method->elements->Increment(static_cast<double>(timing.num_items));
  // A call that never sent a message has no time.
  if (timing.server_total_ns) method->seconds->Observe(static_cast<double>(*timing.server_total_ns) / 1e9);
}

std::string Metrics::Page() const {
  std::vector<MetricFamily> families = registry_.Collect();
  std::vector<MetricFamily> state = Families(look_());
  std::move(state.begin(), state.end(), std::back_inserter(families));
  std::ostringstream page;
  prometheus::TextSerializer().Serialize(page, families);
  return page.str();
}

}  // namespace prefixd
