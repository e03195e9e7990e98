#include "server/program/program_runner.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "server/request.h"
#include "server/work/key_runs.h"
#include "server/work/segment_offsets.h"

namespace prefixd {
namespace {

std::string SlicePath(size_t input) { return StrCat(InputPath(input), ".values.array"); }
std::string SinkPath(size_t output) { return StrCat(OutputPath(output), ".sink.array"); }
std::string NewArrayPath(size_t output) { return StrCat(OutputPath(output), ".sink.new_array"); }

const SlotUse* Find(const std::vector<SlotUse>& uses, Role role) {
  const auto found = std::find_if(uses.begin(), uses.end(), [&](const SlotUse& use) { return use.role == role; });
  return found == uses.end() ? nullptr : &*found;
}

// The array that says how many elements a step works on.
const SlotUse& LengthOf(const PlanStep& step) {
  if (const SlotUse* const indices = Find(step.reads, Role::kIndices)) return *indices;
  if (const SlotUse* const values = Find(step.reads, Role::kValues)) return *values;
  if (const SlotUse* const left = Find(step.reads, Role::kLeft)) return *left;
  return step.writes.front();  // A fill's.
}

// Whether what a step writes there is a scalar of its work, which reaches the device by way of the host.
bool IsScalar(const PlanStep& step, Role role) {
  const auto* const reduce = std::get_if<ReduceSpec>(&step.operation);
  return role == Role::kCountOut || role == Role::kIndexOut ||
         (reduce != nullptr && !reduce->axis && !reduce->segmented);
}

static_assert(kMaxProgramSteps * kMemoryUnitBytes <= kMaxBatchSize * sizeof(ReduceState),
              "a lane's block has a place for the scalar of each step");

// How much device work may be enqueued before somebody who stops the program is heard.
constexpr int64_t kMaxUnheardNs = 10'000'000;

bool IsSame(const ArraySlice& a, const ArraySlice& b) {
  return a.name == b.name && a.first_item == b.first_item && a.num_items == b.num_items;
}

}  // namespace

// ---- Before it runs ------------------------------------------------------------------------------------------------
absl::StatusOr<std::unique_ptr<ProgramRunner>> ProgramRunner::Create(const Device& device, ArrayStore* store,
                                                                     const Caller& caller, Program program) {
  std::unique_ptr<ProgramRunner> runner(new ProgramRunner(store, caller, std::move(program)));
  PREFIXD_RETURN_IF_ERROR(runner->Plan(device));
  PREFIXD_RETURN_IF_ERROR(runner->TakeArrays());
  PREFIXD_RETURN_IF_ERROR(runner->Charge());
  return runner;
}

absl::Status ProgramRunner::Plan(const Device& device) {
  ProgramArrays arrays;
  // From here on the slice has a length.
  const auto look = [&](ArraySlice* slice, const std::string& field) {
    absl::StatusOr<SliceInfo> info = store_->Look(caller_, *slice, field);
    if (info.ok()) slice->num_items = info->num_items;
    return info;
  };
  for (size_t i = 0; i < std::min(program_.inputs.size(), kMaxProgramInputs); ++i) {
    arrays.inputs.emplace_back();
    auto* const slice = std::get_if<ArraySlice>(&program_.inputs[i].values);
    if (slice == nullptr) continue;
    PREFIXD_ASSIGN_OR_RETURN(arrays.inputs.back(), look(slice, SlicePath(i)));
  }
  for (size_t i = 0; i < std::min(program_.outputs.size(), kMaxProgramOutputs); ++i) {
    arrays.sinks.emplace_back();
    Sink& sink = program_.outputs[i].sink;
    if (sink.kind != Sink::Kind::kArray) continue;
    PREFIXD_ASSIGN_OR_RETURN(arrays.sinks.back(), look(&sink.array, SinkPath(i)));
  }
  PREFIXD_ASSIGN_OR_RETURN(plan_, MakePlan(program_, arrays));
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    StepWork one = {.max_items = plan_.slots[LengthOf(step).slot].length.max_items};
    if (const SlotUse* const offsets = Find(step.reads, Role::kSegmentOffsets)) {
      one.num_segments = plan_.slots[offsets->slot].length.max_items;
    }
    absl::StatusOr<std::unique_ptr<const Work>> work = MakeWork(device, step.operation);
    if (work.ok()) {
      if (absl::Status length = (*work)->CheckLength(one.max_items); !length.ok()) work = std::move(length);
    }
    if (!work.ok()) return InPart(work.status(), StepPath(i, step.operation));
    one.work = *std::move(work);
    works_.push_back(std::move(one));
  }
  return absl::OkStatus();
}

absl::Status ProgramRunner::TakeArrays() {
  outside_.resize(plan_.slots.size());
  sinks_.resize(plan_.outputs.size());
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const Sink& sink = program_.outputs[i].sink;
    if (sink.kind != Sink::Kind::kArray) continue;
    PREFIXD_ASSIGN_OR_RETURN(ArrayUse use, store_->Use(caller_, sink.array, Access::kWrite, SinkPath(i)));
    sinks_[i] = use.data();
    if (plan_.outputs[i].delivery == Delivery::kInPlace) outside_[plan_.outputs[i].slot] = use.data();
    uses_.push_back(std::move(use));
  }
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const auto* const slice = std::get_if<ArraySlice>(&program_.inputs[i].values);
    if (slice == nullptr) continue;
    // An output that takes its place has it in use already.
    for (size_t k = 0; k < plan_.outputs.size(); ++k) {
      const Sink& sink = program_.outputs[k].sink;
      if (sink.kind == Sink::Kind::kArray && IsSame(sink.array, *slice)) outside_[i] = sinks_[k];
    }
    if (outside_[i] != nullptr) continue;
    PREFIXD_ASSIGN_OR_RETURN(ArrayUse use, store_->Use(caller_, *slice, Access::kRead, SlicePath(i)));
    outside_[i] = use.data();
    uses_.push_back(std::move(use));
  }
  return absl::OkStatus();
}

// New arrays of known length are charged as what they will be, and are a part of the peak.
absl::Status ProgramRunner::Charge() {
  made_.resize(plan_.outputs.size());
  uint64_t made_bytes = 0;
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    if (plan_.outputs[i].delivery != Delivery::kHandOver) continue;
    const Slot& slot = plan_.slots[plan_.outputs[i].slot];
    ArraySpec spec = program_.outputs[i].sink.to_make;
    spec.dtype = slot.dtype;
    spec.shape = {slot.length.max_items};
    PREFIXD_ASSIGN_OR_RETURN(made_[i], store_->Reserve(caller_, spec, NewArrayPath(i)));
    made_bytes += slot.memory_bytes;
  }
  charged_bytes_ = plan_.peak_bytes - std::min(made_bytes, plan_.peak_bytes);
  PREFIXD_ASSIGN_OR_RETURN(ticket_, store_->ChargeScratch(caller_, charged_bytes_));
  return absl::OkStatus();
}

TaskSize ProgramRunner::Size() const {
  uint64_t num_items = 0;
  for (const StepWork& step : works_) {
    if (step.work->is_yardstick()) return TaskSize::kYardstick;
    num_items = std::max({num_items, step.max_items, step.num_segments});
  }
  constexpr uint64_t kMaxSmallItems = 4096;  // Some launches of microseconds each.
  return num_items <= kMaxSmallItems && works_.size() <= 8 ? TaskSize::kSmall : TaskSize::kLarge;
}

int64_t ProgramRunner::EstimateNs() const {
  int64_t ns = 0;
  for (const StepWork& step : works_) {
    ns += step.work->EstimateNs(std::max(step.max_items, step.num_segments), /*resident=*/true);
  }
  return ns;
}

// ---- While it runs -------------------------------------------------------------------------------------------------
uint64_t ProgramRunner::NumItems(const Slot& slot) const {
  return slot.length.IsKnown() ? slot.length.max_items : kept_[*slot.length.selection].value_or(0);
}

std::byte* ProgramRunner::DataOf(int slot) const {
  return outside_[slot] != nullptr ? outside_[slot] : memory_[slot].data();
}

std::byte* ProgramRunner::Read(const PlanStep& step, Role role) const {
  const SlotUse* const use = Find(step.reads, role);
  return use == nullptr ? nullptr : DataOf(use->slot);
}

std::byte* ProgramRunner::Written(const PlanStep& step, Role role) const {
  const SlotUse* const use = Find(step.writes, role);
  return use == nullptr ? nullptr : DataOf(use->slot);
}

absl::Status ProgramRunner::Run(BorrowedLane& lane, const StopSignal& stop) {
  memory_.resize(plan_.slots.size());
  is_undecided_.resize(plan_.slots.size());
  on_host_.resize(plan_.slots.size());
  kept_.resize(static_cast<size_t>(plan_.num_selections));
  done_.steps.resize(plan_.steps.size());
  done_.peak_bytes = plan_.peak_bytes;
  absl::Status status = RunAll(lane, stop);
  if (const absl::Status idle = lane.lane->Synchronize(); status.ok()) status = idle;
  const std::vector<StageTimes> parts = lane.lane->TakeParts();
  if (status.ok()) Conclude(lane, parts);
  // What is left goes while the lane is here; new arrays have taken theirs.
  memory_.clear();
  scratch_ = Buffer();
  return status;
}

absl::Status ProgramRunner::RunAll(BorrowedLane& lane, const StopSignal& stop) {
  const bool needs_scratch = std::any_of(works_.begin(), works_.end(), [](const StepWork& step) {
    return step.work->shape().scalar_bytes > 0 && !step.work->WritesScalarOnce();
  });
  if (needs_scratch) {
    PREFIXD_ASSIGN_OR_RETURN(scratch_, lane.lane->Allocate(plan_.scratch_bytes));
  }
  PREFIXD_RETURN_IF_ERROR(BringIn(lane));
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    if (HasToWait(step)) PREFIXD_RETURN_IF_ERROR(Await(lane));
    PREFIXD_RETURN_IF_ERROR(stop.Check());
    lane.lane->BeginPart();
    if (absl::Status status = EnqueueStep(lane, i, stop); !status.ok()) {
      return ErrorField(status).empty() ? status : InPart(status, StepPath(i, step.operation));
    }
    for (const int slot : step.dead) memory_[slot] = Buffer();
  }
  lane.lane->BeginPart();
  if (!pending_.empty()) PREFIXD_RETURN_IF_ERROR(Await(lane));
  PREFIXD_RETURN_IF_ERROR(stop.Check());
  for (size_t i = 0; i < plan_.outputs.size(); ++i) PREFIXD_RETURN_IF_ERROR(Deliver(lane, i));
  return absl::OkStatus();
}

void ProgramRunner::Conclude(BorrowedLane& lane, const std::vector<StageTimes>& parts) {
  for (const StageTimes& part : parts) done_.device += part;
  for (size_t i = 0; i < done_.steps.size(); ++i) done_.steps[i].device = parts[i + 1];  // The first is BringIn's.
  const char* next = reinterpret_cast<const char*>(lane.values.host.data());
  for (size_t i = 0; i < done_.outputs.size(); ++i) {
    if (plan_.outputs[i].delivery != Delivery::kInline) continue;
    OutputDone& output = done_.outputs[i];
    output.bytes.assign(next, output.num_items * SizeOf(output.dtype));
    next += output.bytes.size();
  }
}

// Inline inputs, which are small: all of them fit a lane's block.
absl::Status ProgramRunner::BringIn(BorrowedLane& lane) {
  uint64_t staged = 0;
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const auto* const bytes = std::get_if<Payload>(&program_.inputs[i].values);
    if (bytes == nullptr) continue;
    PREFIXD_ASSIGN_OR_RETURN(memory_[i], lane.lane->Allocate(plan_.slots[i].memory_bytes));
    if (bytes->empty()) continue;
    std::byte* const from = lane.in.host.data() + staged;
    bytes->CopyTo(from, 0, bytes->size());
    staged += MemoryBytes(bytes->size());
    PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToDevice(memory_[i].data(), from, bytes->size()));
  }
  return absl::OkStatus();
}

bool ProgramRunner::HasToWait(const PlanStep& step) const {
  return enqueued_ns_ > kMaxUnheardNs || std::any_of(step.reads.begin(), step.reads.end(),
                                                     [&](const SlotUse& read) { return is_undecided_[read.slot]; });
}

absl::Status ProgramRunner::Await(BorrowedLane& lane) {
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  enqueued_ns_ = 0;
  for (const size_t step : pending_) ReadScalar(step, lane.scalar.host.data() + plan_.steps[step].scratch_first);
  pending_.clear();
  is_undecided_.assign(is_undecided_.size(), false);
  return absl::OkStatus();
}

absl::Status ProgramRunner::EnqueueStep(BorrowedLane& lane, size_t number, const StopSignal& stop) {
  const PlanStep& step = plan_.steps[number];
  const Work& work = *works_[number].work;
  StepDone& done = done_.steps[number];
  for (const SlotUse& read : step.reads) PREFIXD_RETURN_IF_ERROR(PutOnDevice(lane, read.slot));
  const uint64_t num_items = NumItems(plan_.slots[LengthOf(step).slot]);
  done.num_items = num_items;
  done.algorithm = AlgorithmOf(work.operation());
  const SlotUse* const into = Find(step.reads, Role::kInto);
  for (const SlotUse& write : step.writes) {
    if (outside_[write.slot] != nullptr || IsScalar(step, write.role)) continue;
    if (step.takes_over) {
      memory_[write.slot] = std::move(memory_[into->slot]);
    } else {
      PREFIXD_ASSIGN_OR_RETURN(memory_[write.slot], lane.lane->Allocate(plan_.slots[write.slot].memory_bytes));
    }
  }
  WorkArrays arrays = {.in = Read(step, Role::kValues),
                       .mask = Read(step, Role::kMask),
                       .coefficients = Read(step, Role::kCoefficients),
                       .other = Read(step, Role::kIndices),
                       .values = Written(step, Role::kOut),
                       .indices = Written(step, Role::kIndicesOut),
                       .num_items = num_items};
  if (Find(step.reads, Role::kLeft) != nullptr) {
    arrays.in = Read(step, Role::kLeft);
    arrays.other = Read(step, Role::kRight);
  }
  std::byte* const scalar = lane.scalar.host.data() + step.scratch_first;
  if (step.scratch_bytes > 0) {
    arrays.scalar = work.WritesScalarOnce() ? scalar : scratch_.data() + step.scratch_first;
  }
  if (into != nullptr) {
    const uint64_t table_items = NumItems(plan_.slots[into->slot]);
    arrays.table_items = table_items;
    if (!step.takes_over && table_items > 0) {
      PREFIXD_RETURN_IF_ERROR(lane.lane->CopyOnDevice(
          arrays.values, DataOf(into->slot), table_items * SizeOf(plan_.slots[into->slot].dtype), CopyTiming::kTimed));
    }
  } else if (arrays.other != nullptr && Find(step.reads, Role::kIndices) != nullptr) {
    arrays.table_items = NumItems(plan_.slots[Find(step.reads, Role::kValues)->slot]);
  }
  if (const SlotUse* const offsets = Find(step.reads, Role::kSegmentOffsets)) {
    const std::byte* const data = DataOf(offsets->slot);
    arrays.offsets = reinterpret_cast<const uint64_t*>(data);
    arrays.num_offsets = NumItems(plan_.slots[offsets->slot]);
    PREFIXD_RETURN_IF_ERROR(Await(lane));  // The check uses the place of scalars.
    PREFIXD_RETURN_IF_ERROR(CheckResidentOffsets(lane, data, arrays.num_offsets, num_items, stop, "segment_offsets"));
  }
  KeyRuns runs;
  const SlotUse* const keys = Find(step.reads, Role::kKeys);
  if (keys != nullptr) {
    PREFIXD_RETURN_IF_ERROR(Await(lane));  // Likewise.
    PREFIXD_ASSIGN_OR_RETURN(runs, FindKeyRuns(lane, *work.shape().keys, DataOf(keys->slot), num_items));
    arrays.offsets = reinterpret_cast<const uint64_t*>(runs.offsets.data());
    arrays.num_offsets = runs.num_offsets;
    if (step.runs) kept_[*step.runs] = runs.num_offsets - 1;
  }
  Buffer indices;  // Those that are counted by segment, where they are no result.
  if (work.shape().counts_segments && arrays.indices == nullptr) {
    PREFIXD_ASSIGN_OR_RETURN(indices, lane.lane->Allocate(num_items * sizeof(uint64_t)));
    arrays.indices = indices.data();
  }
  const bool has_empty_values = work.shape().is_reduced && arrays.num_offsets > 1;
  if (num_items > 0 || step.scratch_bytes > 0 || has_empty_values || work.shape().has_initial) {
    PREFIXD_RETURN_IF_ERROR(work.Enqueue(*lane.lane, arrays));
  }
  if (std::byte* const keys_out = Written(step, Role::kKeysOut); keys_out != nullptr && num_items > 0) {
    PREFIXD_RETURN_IF_ERROR(TakeKeys(lane, *work.shape().keys, runs, DataOf(keys->slot), num_items, keys_out));
  }
  enqueued_ns_ += work.EstimateNs(num_items, /*resident=*/true);
  if (step.scratch_bytes == 0) return absl::OkStatus();
  pending_.push_back(number);  // Behind the step's own waits, which decide what was pending.
  for (const SlotUse& write : step.writes) {
    is_undecided_[write.slot] = work.shape().is_counted || IsScalar(step, write.role);
  }
  if (!work.WritesScalarOnce()) {
    PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(scalar, arrays.scalar, work.shape().scalar_bytes));
  }
  if (!work.shape().counts_segments) return absl::OkStatus();
  PREFIXD_RETURN_IF_ERROR(Await(lane));
  return lane.lane->CountSegments({.index_dtype = std::get<CompactSpec>(step.operation).KeptIndexDType(),
                                   .indices = arrays.indices,
                                   .num_indices = kept_[*step.selection].value_or(0),
                                   .offsets = arrays.offsets,
                                   .counts = reinterpret_cast<uint64_t*>(Written(step, Role::kCountsOut)),
                                   .num_items = arrays.num_offsets - 1});
}

void ProgramRunner::ReadScalar(size_t number, const std::byte* scalar) {
  const PlanStep& step = plan_.steps[number];
  const Work& work = *works_[number].work;
  const auto write = [&](Role role, uint64_t bits) {
    if (const SlotUse* const use = Find(step.writes, role)) on_host_[use->slot] = {.bits = bits};
  };
  if (std::holds_alternative<ReduceSpec>(step.operation)) {
    WorkTotals totals = {.num_items = done_.steps[number].num_items};
    std::memcpy(&totals.scalar.emplace(), scalar, sizeof(ReduceState));
    Result result;
    work.Describe(totals, &result);
    write(Role::kOut, result.value->bits);
    write(Role::kIndexOut, result.index.value_or(~uint64_t{0}));
    return;
  }
  uint64_t count = 0;
  std::memcpy(&count, scalar, sizeof(count));
  if (!work.shape().is_counted) {
    done_.steps[number].num_bad_indices = count;
    return;
  }
  if (step.selection) kept_[*step.selection] = count;
  write(Role::kCountOut, count);
}

absl::Status ProgramRunner::PutOnDevice(BorrowedLane& lane, int slot) {
  std::optional<HostElement>& element = on_host_[slot];
  if (!element || element->is_on_device) return absl::OkStatus();
  if (outside_[slot] == nullptr) {
    PREFIXD_ASSIGN_OR_RETURN(memory_[slot], lane.lane->Allocate(plan_.slots[slot].memory_bytes));
  }
  std::byte* const from = lane.indices.host.data() + static_cast<size_t>(slot) * sizeof(element->bits);
  std::memcpy(from, &element->bits, sizeof(element->bits));
  element->is_on_device = true;
  return lane.lane->CopyToDevice(DataOf(slot), from, SizeOf(plan_.slots[slot].dtype));
}

absl::Status ProgramRunner::Deliver(BorrowedLane& lane, size_t number) {
  const PlanOutput& output = plan_.outputs[number];
  const Slot& slot = plan_.slots[output.slot];
  const uint64_t num_items = NumItems(slot);
  const uint64_t num_bytes = num_items * SizeOf(slot.dtype);
  OutputDone done = {.name = slot.name, .dtype = slot.dtype, .num_items = num_items};
  const Sink& sink = program_.outputs[number].sink;
  if (output.delivery != Delivery::kInline) PREFIXD_RETURN_IF_ERROR(PutOnDevice(lane, output.slot));
  switch (output.delivery) {
    case Delivery::kInline: {
      if (num_bytes > kMaxReplyPayloadBytes - inline_bytes_) {
        return Error(absl::StatusCode::kOutOfRange, "REPLY_TOO_LARGE", StrCat(OutputPath(number), ".sink"),
                     StrCat("with the ", num_items, " elements of ", slot.name, " the inline outputs have more than ",
                            kMaxReplyPayloadBytes, " bytes: let it go to an array"));
      }
      std::byte* const to = lane.values.host.data() + inline_bytes_;
      inline_bytes_ += num_bytes;
      if (const std::optional<HostElement>& element = on_host_[output.slot]) {
        std::memcpy(to, &element->bits, num_bytes);
      } else if (num_bytes > 0) {
        PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(to, DataOf(output.slot), num_bytes));
      }
      break;
    }
    case Delivery::kInPlace:
      break;
    case Delivery::kCopy:
      if (num_items > *sink.array.num_items) {
        return Error(absl::StatusCode::kOutOfRange, "SINK_TOO_SMALL", SinkPath(number),
                     StrCat(slot.name, " has ", num_items, " elements and the slice ", *sink.array.num_items,
                            ": use a larger one"));
      }
      if (num_bytes > 0) {
        PREFIXD_RETURN_IF_ERROR(
            lane.lane->CopyOnDevice(sinks_[number], DataOf(output.slot), num_bytes, CopyTiming::kUntimed));
      }
      break;
    case Delivery::kHandOver:
      made_[number]->TakeMemory(std::move(memory_[output.slot]));
      break;
    case Delivery::kShrink: {
      // What it is charged for is a part of the peak.
      charged_bytes_ -= std::min(charged_bytes_, MemoryBytes(num_bytes));
      ticket_.ShrinkTo(charged_bytes_);
      ArraySpec spec = sink.to_make;
      spec.dtype = slot.dtype;
      spec.shape = {num_items};
      PREFIXD_ASSIGN_OR_RETURN(made_[number], store_->Reserve(caller_, spec, NewArrayPath(number)));
      if (num_bytes > 0) {
        PREFIXD_ASSIGN_OR_RETURN(Buffer memory, lane.lane->Allocate(num_bytes));
        PREFIXD_RETURN_IF_ERROR(
            lane.lane->CopyOnDevice(memory.data(), DataOf(output.slot), num_bytes, CopyTiming::kUntimed));
        made_[number]->TakeMemory(std::move(memory));
      }
      break;
    }
  }
  if (sink.kind == Sink::Kind::kArray) {
    done.slice = sink.array;
    done.slice->num_items = num_items;
  }
  if (output.delivery != Delivery::kHandOver) memory_[output.slot] = Buffer();
  done_.outputs.push_back(std::move(done));
  return absl::OkStatus();
}

uint64_t ProgramRunner::MostReplyBytes() const {
  constexpr uint64_t kMostBytesOfOne = 512;  // What a step took; a name, and where the output is.
  return inline_bytes_ + (done_.steps.size() + done_.outputs.size() + 1) * kMostBytesOfOne;
}

absl::StatusOr<ProgramDone> ProgramRunner::Finish() {
  for (size_t i = 0; i < made_.size(); ++i) {
    if (made_[i] == nullptr) continue;
    absl::StatusOr<ArrayInfo> info = store_->Publish(std::move(made_[i]));
    if (!info.ok()) {  // All of them, or none.
      for (const OutputDone& output : done_.outputs) {
        if (output.new_array) store_->Delete(caller_, output.new_array->name).IgnoreError();
      }
      return std::move(info).status();
    }
    done_.outputs[i].new_array = *std::move(info);
  }
  return std::move(done_);
}

}  // namespace prefixd
