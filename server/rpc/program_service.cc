#include "server/rpc/program_service.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "prefixd/v1/programs.grpc.pb.h"
#include "proto/array_message.h"
#include "proto/wire_array.h"
#include "proto/wire_spec.h"
#include "proto/wire_timing.h"
#include "server/call/request_id.h"
#include "server/lanes/lane_pool.h"
#include "server/program/program_runner.h"
#include "server/rpc/call_info.h"
#include "server/rpc/reading_reactor.h"
#include "server/rpc/wire_program.h"

namespace prefixd {
namespace {

using Clock = std::chrono::steady_clock;

int64_t NanosecondsSince(Clock::time_point start) { return std::chrono::nanoseconds(Clock::now() - start).count(); }

v1::StepTiming ToWire(const StepDone& done, size_t step) {
  v1::StepTiming wire;
  wire.set_step(static_cast<uint32_t>(step));
  if (done.device.kernel_ns) wire.set_kernel_ns(*done.device.kernel_ns);
  wire.set_launches(done.device.launches);
  wire.set_num_bytes(done.device.num_bytes);
  wire.set_num_items(done.num_items);
  if (done.algorithm != Algorithm{}) EncodeAlgorithm(done.algorithm, wire.mutable_algorithm());
  wire.set_num_bad_indices(done.num_bad_indices);
  return wire;
}

v1::ProgramResult ToWire(OutputDone done) {
  v1::ProgramResult wire;
  wire.set_name(done.name);
  wire.set_dtype(EncodeEnum<v1::DType>(done.dtype));
  wire.set_num_items(done.num_items);
  if (done.new_array) {
    *wire.mutable_values()->mutable_new_array() = ToWire(*done.new_array);
  } else if (done.slice) {
    *wire.mutable_values()->mutable_array() = ToWire(*done.slice);
  } else {
    wire.mutable_values()->mutable_inline_()->set_data(std::move(done.bytes));
  }
  return wire;
}

// One call of Run. Its request is charged and watched as any; its arrays and its memory by the store.
class ProgramReactor final : public ReadingReactor {
 public:
  ProgramReactor(ServerContext* context, Rpc* rpc)
      : ReadingReactor(context, rpc, CallInfoOf(*context, rpc, "Run", CallShape::kUnary), Admission::Kind::kRequest),
        context_(context) {}

  void OnCancel() override {
    call().Cancel().IgnoreError();  // For the step that would be next.
    ReadingReactor::OnCancel();
  }

 private:
  void BeginCall(const grpc::ByteBuffer& bytes) override {
    parsed_ = ParseMessage(bytes, kMaxProgramBytes, &request_);
    call().Begin(request_.request_id());
  }

  void OnRequest(const grpc::ByteBuffer& /*bytes*/) override {
    started_ = Clock::now();
    if (absl::Status status = Prepare(); !status.ok()) {
      runner_.reset();
      End(std::move(status));
      return;
    }
    is_running_ = true;
    const TaskInfo info = {
        .size = runner_->Size(), .estimated_ns = runner_->EstimateNs(), .caller = FairCallerOf(call().info())};
    context_->lanes->Submit(info, [this, submitted = Clock::now()](BorrowedLane& lane) {
      timing_.queue_ns = NanosecondsSince(submitted);
      absl::Status status = runner_->Run(lane, call().stop());
      call().Observe(status);
      Answer(std::move(status));
    });
  }

  Watched::Sight LookAtAnswer() override { return {.waits_for = is_running_ ? WaitsFor::kNothing : WaitsFor::kReader}; }

  absl::Status Prepare() {
    PREFIXD_RETURN_IF_ERROR(parsed_);
    PREFIXD_RETURN_IF_ERROR(CheckRequestId(request_.request_id()));
    if (context_->arrays == nullptr) return NotImplemented("", "a program (--max-arrays 0)");
    PREFIXD_ASSIGN_OR_RETURN(Program program, FromWire(std::move(request_)));
    PREFIXD_ASSIGN_OR_RETURN(
        runner_, ProgramRunner::Create(*context_->device, context_->arrays, call().info().caller, std::move(program)));
    return absl::OkStatus();
  }

  // On the lane's thread.
  void Answer(absl::Status status) {
    grpc::ByteBuffer response;
    if (status.ok()) status = Respond(&response);
    runner_.reset();  // Before its caller hears of it: he may use the arrays at once.
    is_running_ = false;
    End(std::move(status), response);
  }

  absl::Status Respond(grpc::ByteBuffer* bytes) {
    PREFIXD_RETURN_IF_ERROR(call().Charge(runner_->MostReplyBytes()));  // Before there are arrays that would be left.
    PREFIXD_ASSIGN_OR_RETURN(ProgramDone done, runner_->Finish());
    v1::RunResponse response;
    timing_.host_to_device_ns = done.device.host_to_device_ns;
    timing_.kernel_ns = done.device.kernel_ns;
    timing_.device_to_host_ns = done.device.device_to_host_ns;
    timing_.launches = done.device.launches;
    timing_.num_bytes = done.device.num_bytes;
    timing_.device = context_->device_name;
    for (size_t i = 0; i < done.steps.size(); ++i) {
      timing_.num_items += done.steps[i].num_items;
      *response.add_steps() = ToWire(done.steps[i], i);
    }
    for (OutputDone& output : done.outputs) *response.add_outputs() = ToWire(std::move(output));
    response.set_peak_bytes(done.peak_bytes);
    timing_.server_total_ns = NanosecondsSince(started_);
    *response.mutable_timing() = prefixd::ToWire(timing_);
    *bytes = SerializeArrayMessage(response, {});
    call().CountSent(bytes->Length());
    return absl::OkStatus();
  }

  ServerContext* const context_;
  v1::RunRequest request_;
  absl::Status parsed_;
  Clock::time_point started_;
  std::unique_ptr<ProgramRunner> runner_;
  Timing timing_;
  std::atomic<bool> is_running_{false};
};

}  // namespace

void AddProgramMethods(ServerContext* context, Methods* methods) {
  methods->Add(v1::ProgramService::service_full_name(), "Run",
               [=](Rpc* rpc) { return new ProgramReactor(context, rpc); });
}

}  // namespace prefixd
