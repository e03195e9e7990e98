// How much of the transport's speed prefixd's data path keeps: prefixd beside a bare gRPC echo and sink, in one run.
//   data_path_bench PREFIXD [DEVICE [GIB [FLIGHT_PEER]]]
//
// Starts the program PREFIXD on DEVICE (default auto), and moves GIB GiB (default 1) a stream. FLIGHT_PEER is the path
// of flight_peer.py, which lies beside this file; with it, prefixd is compared with that peer too.
//
// Two bare servers (bare_server.cc, beside this program) run as processes of their own, as prefixd does. One runs as
// gRPC and glibc leave it; the bars compare prefixd with this one. The other has prefixd's process settings, as the
// callers have. The callers call all servers in turns, and the median of the turns counts.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/process.h"
#include "prefixd/v1/primitives.grpc.pb.h"
#include "proto/array_message.h"
#include "tests/bench/server_process.h"
#include "tests/bench/streams.h"

namespace {

using Clock = std::chrono::steady_clock;
using grpc::ByteBuffer;
using prefixd::Connect;
using prefixd::Fail;
using prefixd::FirstRequest;
using prefixd::kStreamReduce;
using prefixd::kStreamScan;
using prefixd::MeasureStreams;
using prefixd::Median;
using prefixd::RandomFloats;
using prefixd::ServerProcess;
using prefixd::StreamMessages;
using prefixd::Transfer;
using Stub = grpc::TemplatedGenericStub<ByteBuffer, ByteBuffer>;

constexpr int kTurns = 3;
constexpr int kUnaryTurns = 9;  // Short ones: where a caller's threads happen to run changes latency by a quarter.
constexpr size_t kUnaryItems = 1024;
constexpr char kScan[] = "/prefixd.v1.PrefixService/Scan";

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// ---- Unary callers
// ---------------------------------------------------------------------------------------------------
ByteBuffer UnaryMessage() {
  std::mt19937 random(2);
  return prefixd::SerializeArrayMessage(FirstRequest<prefixd::v1::ScanRequest>(),
                                        {{100, {}, RandomFloats(random, kUnaryItems * sizeof(float))}});
}

// Callers in a closed loop over that many connections, for half a second after a quarter of warm-up.
struct Unary {
  double p50_us = 0;
  double calls_per_second = 0;
};
Unary MeasureUnary(const ServerProcess& peer, int num_callers, int num_channels) {
  std::vector<std::unique_ptr<Stub>> stubs;
  for (int i = 0; i < num_channels; ++i) stubs.push_back(std::make_unique<Stub>(Connect(peer)));
  const ByteBuffer request = UnaryMessage();
  std::atomic<bool> stop{false};
  std::atomic<bool> counts{false};
  std::atomic<int> live{num_callers};
  std::atomic<long> num_calls{0};
  std::vector<std::vector<double>> latencies_us(num_callers);
  struct Call {
    grpc::ClientContext context;
    ByteBuffer request, response;
    Clock::time_point start;
  };
  std::function<void(int)> next = [&](int caller) {
    auto* call = new Call;
    call->request = request;
    call->start = Clock::now();
    stubs[caller % num_channels]->UnaryCall(
        &call->context, kScan, {}, &call->request, &call->response, [&, call, caller](const grpc::Status& status) {
          if (!status.ok()) Fail(status.error_message());
          if (counts) {
            ++num_calls;
            latencies_us[caller].push_back(Seconds(Clock::now() - call->start) * 1e6);
          }
          delete call;
          if (stop) {
            --live;
          } else {
            next(caller);
          }
        });
  };
  for (int i = 0; i < num_callers; ++i) next(i);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));  // Warms up; gRPC's threads make the calls.
  counts = true;
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // Calls are counted for so long.
  const double rate = static_cast<double>(num_calls) / Seconds(Clock::now() - start);
  stop = true;
  while (live > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // Until the last calls end.
  std::vector<double> all;
  for (const auto& one : latencies_us) all.insert(all.end(), one.begin(), one.end());
  return {all.empty() ? 0 : Median(std::move(all)), rate};
}

// ---- The table -----------------------------------------------------------------------------------------------------
struct Peers {
  ServerProcess bare;
  ServerProcess tuned;
  ServerProcess ours;
};

// The same figure of each.
struct Figures {
  double bare = 0;
  double tuned = 0;
  double ours = 0;
};

void Print(const char* what, const Figures& figures, const char* unit, const char* bar) {
  std::printf("%-42s %10.2f %10.2f %10.2f  %-8s %6.2f %6.2f  %s\n", what, figures.bare, figures.tuned, figures.ours,
              unit, figures.ours / figures.bare, figures.ours / figures.tuned, bar);
  std::fflush(stdout);
}

// The peers in turns: the samples of each.
template <class Measure>
auto InTurns(const Peers& peers, int num_turns, Measure measure) {
  using Samples = std::vector<decltype(measure(peers.ours))>;
  struct {
    Samples bare, tuned, ours;
  } samples;
  for (int i = 0; i < num_turns; ++i) {
    samples.bare.push_back(measure(peers.bare));
    samples.tuned.push_back(measure(peers.tuned));
    samples.ours.push_back(measure(peers.ours));
  }
  return samples;
}

template <class T>
double MedianOf(const std::vector<T>& samples, double T::*figure) {
  std::vector<double> values;
  for (const T& sample : samples) values.push_back(sample.*figure);
  return Median(std::move(values));
}

template <class Samples, class T>
Figures MediansOf(const Samples& samples, double T::*figure) {
  return {MedianOf(samples.bare, figure), MedianOf(samples.tuned, figure), MedianOf(samples.ours, figure)};
}

// GB/s of so many streams through the Flight server that the script runs; it says itself what went wrong.
double MeasureFlight(const std::string& script, int num_streams, int num_processes) {
  const std::string arguments = "' " + std::to_string(num_streams) + " " + std::to_string(num_processes);
  FILE* const pipe = popen(("python3 '" + script + arguments).c_str(), "r");
  double gb_per_second = 0;
  if (pipe == nullptr || std::fscanf(pipe, "%lf", &gb_per_second) != 1 || pclose(pipe) != 0) Fail(script + " failed");
  return gb_per_second;
}

// Our callers are one process always.
void CompareWithFlight(const ServerProcess& ours, const std::string& script) {
  constexpr size_t kStreamBytes = size_t{256} << 20;  // As the script's.
  std::printf("%-42s %10s %10s %10s\n", "", "Flight", "", "prefixd");
  const auto messages = StreamMessages<prefixd::v1::ScanRequest>();
  const auto measure = [&](int num_streams) {
    std::vector<Transfer> turns;
    for (int i = 0; i < kTurns; ++i) {
      turns.push_back(MeasureStreams(ours, kStreamScan, messages, num_streams, kStreamBytes));
    }
    return MedianOf(turns, &Transfer::gb_per_second);
  };
  const auto compare = [&](const char* what, int num_streams, int num_processes, const char* bar) {
    const double flight = MeasureFlight(script, num_streams, num_processes);
    const double rate = measure(num_streams);
    std::printf("%-42s %10.2f %10s %10.2f  %-8s %6.2f %6s  %s\n", what, flight, "", rate, "GB/s", rate / flight, "",
                bar);
    std::fflush(stdout);
  };
  compare("scan of 2^26 f32, 1 stream", 1, 1, ">= 1.20");
  compare("8 streams, Flight's callers one process", 8, 1, ">= 4.00");
  compare("8 streams, Flight's callers 8 processes", 8, 8, ">= 4.00");
}

void Run(const Peers& peers, size_t stream_bytes) {
  std::printf("%-42s %10s %10s %10s  %-8s %6s %6s  %s\n", "", "bare gRPC", "tuned", "prefixd", "", "/bare", "/tuned",
              "bar, of bare");
  const auto scans = StreamMessages<prefixd::v1::ScanRequest>();
  const auto reduces = StreamMessages<prefixd::v1::ReduceRequest>();
  for (const int streams : {1, 8}) {
    const bool one = streams == 1;
    const auto scan = InTurns(peers, kTurns, [&](const ServerProcess& peer) {
      return MeasureStreams(peer, kStreamScan, scans, streams, stream_bytes);
    });
    Print(one ? "StreamScan of f32, 1 stream" : "StreamScan of f32, 8 streams",
          MediansOf(scan, &Transfer::gb_per_second), "GB/s", one ? ">= 0.90" : ">= 0.85");
    Print("  server CPU", MediansOf(scan, &Transfer::cpu_seconds_per_gb), "s/GB", "<= 1.40");
    const auto reduce = InTurns(peers, kTurns, [&](const ServerProcess& peer) {
      return MeasureStreams(peer, kStreamReduce, reduces, streams, stream_bytes);
    });
    Print(one ? "StreamReduce of f32, 1 stream" : "StreamReduce of f32, 8 streams",
          MediansOf(reduce, &Transfer::gb_per_second), "GB/s", one ? ">= 0.90" : ">= 0.80");
  }
  const Figures p50 = MediansOf(
      InTurns(peers, kUnaryTurns, [](const ServerProcess& peer) { return MeasureUnary(peer, 1, 1); }), &Unary::p50_us);
  Print("unary scan of 1,024 f32, 1 caller, p50", p50, "us",
        ("+ " + std::to_string(std::lround(p50.ours - p50.bare)) + " us; bar: + 40").c_str());
  const auto many = InTurns(peers, kUnaryTurns, [](const ServerProcess& peer) { return MeasureUnary(peer, 64, 8); });
  Print("unary scan of 1,024 f32, 64 callers", MediansOf(many, &Unary::calls_per_second), "calls/s", ">= 0.70");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) Fail("usage: data_path_bench PREFIXD [DEVICE [GIB [FLIGHT_PEER]]]");
  const std::string device = argc > 2 ? argv[2] : "auto";
  const double gib = argc > 3 ? std::atof(argv[3]) : 1.0;
  prefixd::TuneProcess();
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  Peers peers;
  peers.bare = prefixd::StartServer({folder / "bare_server", "PORT_FILE"});
  peers.tuned = prefixd::StartServer({folder / "tuned_bare_server", "PORT_FILE"});
  peers.ours = prefixd::StartServer(
      {argv[1], "--listen", "127.0.0.1:0", "--port-file", "PORT_FILE", "--device", device, "--log-level", "warn"});
  std::printf(
      "# gRPC %s, %u cores, loopback, %.2f GiB a stream in messages of 1 MiB, median of %d; of %d for "
      "unary calls\n",
      grpc::Version().c_str(), std::thread::hardware_concurrency(), gib, kTurns, kUnaryTurns);
  Run(peers, static_cast<size_t>(gib * static_cast<double>(size_t{1} << 30)));
  if (argc > 4) CompareWithFlight(peers.ours, argv[4]);
  for (const ServerProcess& peer : {peers.bare, peers.tuned, peers.ours}) peer.Kill();
  std::fflush(stdout);
  _exit(0);  // gRPC 1.51 takes ten seconds to end its callback threads.
}
