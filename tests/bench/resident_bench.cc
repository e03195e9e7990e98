// What calls on resident arrays cost beside the kernels inside them, in one run: a bare unary echo, and a bare sink of
// eight streams, are what gRPC alone takes.
//   resident_bench PREFIXD [--device NAME] [--log2-items N] [--upload-mib N] [--rounds N] [--numpy-peer PATH]
//
// Starts the program PREFIXD, and bare_server, which lies beside this program, as gRPC and glibc leave it. Both are
// called in turns, by one thread; the median of all calls counts. "rest" is a call less its kernels and the echo. What
// threads take to wake that have slept as long as the kernels run is in it: "paused" shows it for the echo.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/process.h"
#include "client/client.h"
#include "prefixd/v1/primitives.grpc.pb.h"
#include "tests/bench/server_process.h"
#include "tests/bench/streams.h"

namespace prefixd {
namespace {

using client::Array;
using client::Client;
using client::Program;
using Clock = std::chrono::steady_clock;

constexpr int kTurns = 5;
constexpr int kStreams = 8;

struct Options {
  std::string prefixd;
  std::string device = "auto";
  int log2_items = 28;
  uint64_t upload_mib = 4096;
  uint64_t rounds = 100'000;
  std::string numpy_peer;
};

double Microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

template <class T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status().ToString());
  return *std::move(value);
}
void Must(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

// One call: what it took, and its kernels.
struct Sample {
  double call_us = 0;
  double kernels_us = 0;
  double server_us = 0;
  double queue_us = 0;
};

Sample SampleOf(Clock::duration call, const Timing& timing) {
  const auto microseconds = [](const std::optional<int64_t>& ns) { return static_cast<double>(ns.value_or(0)) / 1e3; };
  return {Microseconds(call), microseconds(timing.kernel_ns), microseconds(timing.server_total_ns),
          microseconds(timing.queue_ns)};
}

using Call = std::function<Timing()>;

std::vector<Sample> Repeat(int repetitions, const Call& call) {
  std::vector<Sample> samples;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = Clock::now();
    const Timing timing = call();
    samples.push_back(SampleOf(Clock::now() - start, timing));
  }
  return samples;
}

double MedianOf(const std::vector<Sample>& samples, double Sample::*figure) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.*figure);
  return Median(std::move(values));
}

void PrintHead() {
  std::printf("%-48s %8s %8s %8s %8s %8s %8s %8s  %s\n", "median, us", "call", "server", "queue", "kernels", "echo",
              "paused", "rest", "bar of the rest");
}

// The bare echoes: one after the other, and each after a pause as long as the kernels, in which threads fall asleep.
struct Echoes {
  std::vector<Sample> in_a_row;
  std::vector<Sample> paused;
};

void Print(const std::string& what, const std::vector<Sample>& calls, const Echoes& echoes, bool kernels_count,
           const char* bar) {
  const double call = MedianOf(calls, &Sample::call_us);
  const double kernels = MedianOf(calls, &Sample::kernels_us);
  const double echo = MedianOf(echoes.in_a_row, &Sample::call_us);
  std::printf("%-48s %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f  %s\n", what.c_str(), call,
              MedianOf(calls, &Sample::server_us), MedianOf(calls, &Sample::queue_us), kernels, echo,
              MedianOf(echoes.paused, &Sample::call_us), call - echo - (kernels_count ? kernels : 0), bar);
  std::fflush(stdout);
}

class ResidentBench {
 public:
  ResidentBench(const Options& options, const ServerProcess& ours, const ServerProcess& bare)
      : options_(options),
        items_(uint64_t{1} << options.log2_items),
        ours_(ours),
        bare_(bare),
        client_(ours.address),
        bare_stub_(v1::PrefixService::NewStub(Connect(bare))) {}

  void Run() {
    PrintHead();
    Primitives();
    if (!options_.numpy_peer.empty()) CompareWithNumPy();
    Upload();
    CreateAndDelete();
  }

 private:
  // The call and the bare echo in turns. kernels_count: whether the bar leaves the kernels to the device.
  void Compare(const std::string& what, int repetitions, const Call& call, const char* bar, bool kernels_count = true) {
    const Call echo = [this] {
      grpc::ClientContext context;
      v1::ScanResponse response;
      if (const grpc::Status status = bare_stub_->Scan(&context, {}, &response); !status.ok()) {
        Fail(status.error_message());
      }
      return Timing();
    };
    std::vector<Sample> calls;
    Echoes echoes;
    for (int turn = 0; turn <= kTurns; ++turn) {
      const std::vector<Sample> some = Repeat(repetitions / kTurns, call);
      const std::vector<Sample> others = Repeat(300, echo);
      if (turn == 0) continue;  // Warms up.
      calls.insert(calls.end(), some.begin(), some.end());
      echoes.in_a_row.insert(echoes.in_a_row.end(), others.begin(), others.end());
      for (int i = 0; i < 20; ++i) {
        const double kernels_us = MedianOf(some, &Sample::kernels_us);
        std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(kernels_us));  // The pause is measured.
        const std::vector<Sample> one = Repeat(1, echo);
        echoes.paused.insert(echoes.paused.end(), one.begin(), one.end());
      }
    }
    Print(what, calls, echoes, kernels_count, bar);
  }

  void Primitives() {
    const std::string size = "2^" + std::to_string(options_.log2_items);
    const Array x = Random(items_);
    const Array y = Random(items_);
    Compare(
        "scan of " + size + " f32 into another", 100, [&] { return Must(client_.ScanInto<float>(x, y)).timing; },
        "<= 150");
    Compare(
        "reduce of " + size + " f32", 100, [&] { return Must(client_.Reduce<float>(x)).timing; }, "");
    Program program;
    const auto kept = program.Compact(program.Input<float>(x), {Comparison::kGreater, 0.5F});
    const auto sums = program.Scan(kept.values);
    const auto total = program.Reduce(kept.values);
    program.Output(total.value);
    program.Output(sums, y);
    Compare(
        "program on it: compact half, scan, reduce", 100,
        [&] {
          const client::ProgramResult result = Must(client_.Run(program));
          Timing timing = result.timing();
          timing.kernel_ns = 0;
          for (const client::StepTiming& step : result.steps()) *timing.kernel_ns += step.kernel_ns.value_or(0);
          return timing;
        },
        "<= 150");
    const Array small = Random(1024);
    const Array out = Random(1024);
    Compare(
        "scan of 1,024 f32 into another, kernel included", 3000,
        [&] { return Must(client_.ScanInto<float>(small, out)).timing; }, "<= 25", /*kernels_count=*/false);
  }

  Array Random(uint64_t num_items) {
    return Must(client_.CreateArray({.dtype = DType::kF32, .shape = {num_items}}, client::Random<float>(num_items)));
  }

  void CompareWithNumPy() {
    const Array z = Must(client_.CreateArray({.dtype = DType::kI32, .shape = {items_}}, client::Constant<int32_t>(1)));
    const std::string of = " of 2^" + std::to_string(options_.log2_items) + " i32";
    Compare(
        "reduce" + of, 100, [&] { return Must(client_.Reduce<int32_t>(z)).timing; }, "");
    Compare(
        "scan" + of + " in place", 100, [&] { return Must(client_.ScanInto<int32_t>(z, z)).timing; }, "");
    FILE* const pipe = popen(("python3 '" + options_.numpy_peer + "' " + std::to_string(items_)).c_str(), "r");
    double sum_ms = 0;
    double cumsum_ms = 0;
    if (pipe == nullptr || std::fscanf(pipe, "%lf %lf", &sum_ms, &cumsum_ms) != 2 || pclose(pipe) != 0) {
      Fail(options_.numpy_peer + " failed");
    }
    std::printf("NumPy on one core%s: sum %.1f ms, cumsum %.1f ms\n", of.c_str(), sum_ms, cumsum_ms);
  }

  // The client's upload, over as many connections as it takes, beside as many bare streams that are dropped.
  void Upload() {
    const uint64_t num_bytes = options_.upload_mib << 20;
    const auto messages = StreamMessages<v1::ReduceRequest>();
    std::vector<float> values(num_bytes / sizeof(float));
    for (uint64_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 4099);
    const Array array = Must(client_.CreateArray({.dtype = DType::kF32, .shape = {values.size()}}));
    std::vector<double> sinks;
    std::vector<double> uploads;
    std::vector<double> downloads;
    for (int turn = 0; turn <= kTurns; ++turn) {
      const double sink = MeasureStreams(bare_, kStreamReduce, messages, kStreams, num_bytes / kStreams).gb_per_second;
      const double upload = GbPerSecond(num_bytes, [&] { Must(array.Write<float>(values)); });
      std::vector<float> back(values.size());
      const double download = GbPerSecond(num_bytes, [&] {
        Must(array.ReadBytes({reinterpret_cast<std::byte*>(back.data()), num_bytes}));
      });
      if (back != values) Fail("other values came back than were uploaded");
      if (turn == 0) continue;
      sinks.push_back(sink);
      uploads.push_back(upload);
      downloads.push_back(download);
    }
    const double sink = Median(sinks);
    const double upload = Median(uploads);
    std::printf("upload of %llu MiB: %.2f GB/s, %.2f of the bare sink of %d streams (%.2f GB/s); bar: >= 0.85\n",
                static_cast<unsigned long long>(options_.upload_mib), upload, upload / sink, kStreams, sink);
    std::printf("download of it: %.2f GB/s\n", Median(downloads));
    std::fflush(stdout);
  }

  static double GbPerSecond(uint64_t num_bytes, const std::function<void()>& transfer) {
    const auto start = Clock::now();
    transfer();
    return static_cast<double>(num_bytes) / 1e3 / Microseconds(Clock::now() - start);
  }

  void CreateAndDelete() {
    const auto look = [this](const char* when) {
      const client::ServerInfo info = Must(client_.GetServerInfo());
      std::printf(
          "%s: %llu arrays, %llu bytes of them; MiB: %llu of device memory free, %llu pinned in use, %llu "
          "resident on the host\n",
          when, static_cast<unsigned long long>(info.arrays.used),
          static_cast<unsigned long long>(info.array_bytes.used),
          static_cast<unsigned long long>(info.device_memory_free_bytes >> 20),
          static_cast<unsigned long long>(info.staging_bytes.used >> 20),
          static_cast<unsigned long long>(ours_.ResidentBytes() >> 20));
      std::fflush(stdout);
    };
    const auto create_and_delete = [this](uint64_t rounds) {
      for (uint64_t i = 0; i < rounds; ++i) {
        Must(Must(client_.CreateArray({.dtype = DType::kI32, .shape = {1000 + i % 100'000}})).Delete());
      }
    };
    create_and_delete(options_.rounds / 20);               // What is kept from the first ones on is there before, too.
    std::this_thread::sleep_for(std::chrono::seconds(2));  // The server looks at its device's memory once a second.
    look("before");
    const auto start = Clock::now();
    create_and_delete(options_.rounds);
    const double each_us = Microseconds(Clock::now() - start) / static_cast<double>(options_.rounds);
    std::this_thread::sleep_for(std::chrono::seconds(2));  // As before.
    create_and_delete(1);
    look("after ");
    std::printf("%llu creations and deletions of up to 400 kB, %.0f us each\n",
                static_cast<unsigned long long>(options_.rounds), each_us);
  }

  const Options& options_;
  const uint64_t items_;
  const ServerProcess& ours_;
  const ServerProcess& bare_;
  Client client_;
  const std::unique_ptr<v1::PrefixService::Stub> bare_stub_;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("What calls on resident arrays cost, beside bare gRPC and the kernels inside them.");
  app.add_option("prefixd", options.prefixd, "The server's program")->required()->check(CLI::ExistingFile);
  app.add_option("--device", options.device, "The server's --device")->capture_default_str();
  app.add_option("--log2-items", options.log2_items, "The large arrays' length: a power of two, by its exponent")
      ->check(CLI::Range(10, 32))
      ->capture_default_str();
  app.add_option("--upload-mib", options.upload_mib, "The size of what is uploaded")
      ->check(CLI::Range(64, 1 << 16))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "How often an array is created and deleted")
      ->check(CLI::Range(20, 100'000'000))
      ->capture_default_str();
  app.add_option("--numpy-peer", options.numpy_peer, "The path of numpy_peer.py; without it NumPy is left out");
  CLI11_PARSE(app, argc, argv);

  TuneProcess();
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const ServerProcess bare = StartServer({folder / "bare_server", "PORT_FILE"});
  const ServerProcess ours =
      StartServer({options.prefixd, "--listen", "127.0.0.1:0", "--port-file", "PORT_FILE", "--device", options.device,
                   "--log-level", "warn", "--caller-share-percent", "100"});
  std::printf("# gRPC %s, %u cores, loopback\n", grpc::Version().c_str(), std::thread::hardware_concurrency());
  ResidentBench(options, ours, bare).Run();
  for (const ServerProcess& server : {bare, ours}) server.Kill();
  std::fflush(stdout);
  _exit(0);  // gRPC 1.51 takes ten seconds to end its callback threads.
}

}  // namespace
}  // namespace prefixd

int main(int argc, char** argv) { return prefixd::Main(argc, argv); }
