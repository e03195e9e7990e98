// Sessions whose operands and results are resident arrays: what is left behind when something fails, and many at once.
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/arrays/array_store.h"
#include "tests/server/session_fixture.h"

namespace prefixd {
namespace {

constexpr uint64_t kItems = 300'000;

class SessionPlacesTest : public SessionTest {
 protected:
  SessionPlacesTest() { MakeStore(uint64_t{1} << 30); }
  ~SessionPlacesTest() override { store_.reset(); }  // Before the lanes, whose memory the arrays have.

  void MakeStore(uint64_t max_bytes) {
    store_ = std::make_unique<ArrayStore>(ArrayStore::Limits{.arrays = 100, .bytes = max_bytes, .share_percent = 100});
    context_.arrays = store_.get();
  }

  static Message Begin(Operation operation, PlaceNames places, std::string values = "") {
    Message message;
    message.operation = std::move(operation);
    message.places = std::move(places);
    message.chunk.values = Payload(std::move(values));
    return message;
  }
  absl::Status RunOne(CallInfo call, Message message) {
    std::vector<Message> messages;
    messages.push_back(std::move(message));
    return Run(std::move(call), std::move(messages));
  }
  const Result& result() const { return transport_->result(); }

  static Sink NewArray() { return {.kind = Sink::Kind::kNewArray}; }
  static Sink Into(ArraySlice slice) {
    return {.kind = Sink::Kind::kArray, .field = "sink.array", .array = std::move(slice)};
  }

  static Sink NewOf(std::vector<uint64_t> shape) {
    Sink sink = NewArray();
    sink.to_make.shape = std::move(shape);
    return sink;
  }

  // An array of 0, 1, 2 ...
  std::string MakeIota(uint64_t num_items) {
    FillSpec fill;
    fill.kind = FillKind::kIota;
    fill.step = Value::Of<int32_t>(1);
    const absl::Status status = RunOne(Unary(), Begin(fill, {.values_sink = NewOf({num_items})}));
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? result().new_values->name : "";
  }
  std::vector<int32_t> Read(const std::string& name) {
    const absl::Status status = RunOne(Stream(), Begin(CopySpec{}, {.values = ArraySlice{.name = name}}));
    EXPECT_TRUE(status.ok()) << status;
    return Items<int32_t>(transport_->values());
  }
  uint64_t NumArrays() const { return store_->in_use().requests; }

  std::unique_ptr<ArrayStore> store_;
};

TEST_F(SessionPlacesTest, WhatIsResidentIsOnePieceWholeAndInPlaceIsWhereItWas) {
  const std::string name = MakeIota(kItems);
  const int works = device_.works();
  ASSERT_TRUE(
      RunOne(Unary(), Begin(ScanOf(), {.values = ArraySlice{.name = name}, .values_sink = Into({.name = name})})).ok());
  EXPECT_EQ(device_.works(), works + 1);
  EXPECT_EQ(result().timing.num_items, kItems);
  EXPECT_EQ(result().values->num_items, kItems);
  std::vector<int32_t> items(kItems);
  std::iota(items.begin(), items.end(), 0);
  EXPECT_EQ(Read(name), InclusiveSum(items));
  EXPECT_EQ(NumArrays(), 1u);
}

TEST_F(SessionPlacesTest, NothingIsLeftOfACallThatFails) {
  const std::string name = MakeIota(kItems);
  const PlaceNames places = {.values = ArraySlice{.name = name}, .values_sink = NewArray()};
  const Admission::Use before = store_->in_use();
  const CompactSpec compact = CompactOf({.predicate = Predicate{Comparison::kLess, Value::Of<int32_t>(10)}});
  const auto is_as_before = [&] {
    EXPECT_EQ(store_->in_use().requests, before.requests);
    EXPECT_EQ(store_->in_use().bytes, before.bytes);
  };
  device_.before_work = [] { return absl::InternalError("it broke"); };
  EXPECT_EQ(RunOne(Unary(), Begin(ScanOf(), places)).message(), "it broke");
  is_as_before();
  EXPECT_EQ(RunOne(Unary(), Begin(compact, places)).message(), "it broke");
  is_as_before();
  device_.before_work = [] { return absl::OkStatus(); };
  device_.memory_status = absl::ResourceExhaustedError("full");
  EXPECT_EQ(RunOne(Unary(), Begin(ScanOf(), places)).message(), "full");
  is_as_before();
  EXPECT_EQ(RunOne(Unary(), Begin(compact, places)).message(), "full");
  is_as_before();
  device_.memory_status = absl::OkStatus();
  ASSERT_TRUE(RunOne(Unary(), Begin(compact, places)).ok());  // The array is nobody's any more.
  EXPECT_EQ(result().num_kept, 10u);
  EXPECT_EQ(result().new_values->num_items, 10u);
  EXPECT_EQ(Read(result().new_values->name).size(), 10u);
  EXPECT_EQ(NumArrays(), 2u);
}

TEST_F(SessionPlacesTest, AReducesValueGoesIntoItsArrayHoweverItsElementsCome) {
  const std::string name = MakeIota(3);
  const std::vector<std::vector<int32_t>> streams = {{}, {4}, Iota(kItems), Iota(10)};
  for (const std::vector<int32_t>& items : streams) {
    SCOPED_TRACE(items.size());
    const int32_t sum = items.empty() ? 0 : InclusiveSum(items).back();
    for (const bool is_new : {false, true}) {
      const Sink sink = is_new ? NewArray() : Into({.name = name, .first_item = 1});
      std::vector<Message> messages;
      messages.push_back(Begin(ReduceOf(), {.values_sink = sink}, Bytes(items)));
      messages.push_back({});
      ASSERT_TRUE(Run(Stream(), std::move(messages)).ok());
      EXPECT_EQ(result().value->As<int32_t>(), sum);
      EXPECT_EQ(Read(is_new ? result().new_values->name : name),
                is_new ? std::vector<int32_t>{sum} : (std::vector<int32_t>{0, sum, 2}));
    }
  }
  const Admission::Use before = store_->in_use();
  device_.before_work = [] { return absl::InternalError("it broke"); };
  const PlaceNames places = {.values = ArraySlice{.name = name}, .values_sink = NewArray()};
  EXPECT_EQ(RunOne(Unary(), Begin(ReduceOf(), places)).message(), "it broke");
  EXPECT_EQ(store_->in_use().requests, before.requests);
}

TEST_F(SessionPlacesTest, TheScratchOfAResultOfUnknownLengthIsInTheBudget) {
  MakeStore(kItems * sizeof(int32_t) * 3 / 2 + 4096);
  const std::string name = MakeIota(kItems);
  const CompactSpec compact = CompactOf({.predicate = Predicate{Comparison::kLess, Value::Of<int32_t>(10)}});
  const PlaceNames places = {.values = ArraySlice{.name = name}, .values_sink = NewArray()};
  EXPECT_EQ(ErrorReason(RunOne(Unary(), Begin(compact, places))), "ARRAY_BUDGET");
  const PlaceNames half = {.values = ArraySlice{.name = name, .num_items = kItems / 3}, .values_sink = NewArray()};
  ASSERT_TRUE(RunOne(Unary(), Begin(compact, half)).ok());
  EXPECT_EQ(result().new_values->num_bytes, 256u);
}

// A carry of doubles has the elements since the last whole group: up to 1 MiB, which few bytes ask for.
TEST_F(SessionPlacesTest, CarriesAreChargedWhileTheyAreHeld) {
  constexpr uint64_t kOpenItems = 131'071;
  const ScanSpec scan = ScanOf({}, DType::kF64);
  ASSERT_TRUE(RunOne(Unary(), Begin(FillSpec{.dtype = DType::kF64}, {.values_sink = NewOf({kOpenItems})})).ok());
  const PlaceNames places = {.values = ArraySlice{.name = result().new_values->name}, .values_sink = NewArray()};
  const uint64_t before = admission_->in_use().bytes;  // That call's, which is not destroyed yet.
  Message asks = Begin(scan, places);
  asks.return_carry = true;
  std::vector<Message> messages;
  messages.push_back(std::move(asks));
  auto first = std::make_unique<FakeTransport>(&context_, Unary(), std::move(messages));
  uint64_t at_end = 0;
  first->before_done = [&] { at_end = admission_->in_use().bytes; };
  ASSERT_TRUE(first->Run());
  ASSERT_TRUE(first->result().status.ok()) << first->result().status;
  const Payload carry = *first->result().carry_out;
  EXPECT_GE(carry.size(), kOpenItems * sizeof(double));
  EXPECT_GE(at_end - before, carry.size());
  first.reset();
  for (int i = 0; i < 2000 && admission_->in_use().bytes != before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // The lane may have the session for a moment.
  }
  EXPECT_EQ(admission_->in_use().bytes, before);

  Message brings = Begin(scan, {});
  brings.carry_in = carry;
  messages.clear();
  messages.push_back(std::move(brings));
  messages.push_back(MakeMessage(std::nullopt, ""));
  FakeTransport second(&context_, Stream(), std::move(messages));
  uint64_t waiting = 0;
  second.before_read = [&](size_t i) {
    if (i == 1) waiting = admission_->in_use().bytes;
  };
  ASSERT_TRUE(second.Run());
  EXPECT_TRUE(second.result().status.ok()) << second.result().status;
  EXPECT_GE(waiting - before, carry.size());
}

TEST_F(SessionPlacesTest, ACallThatIsCancelledLetsGoOfItsArrays) {
  const std::string name = MakeIota(kItems);
  std::vector<Message> messages;
  messages.push_back(Begin(CopySpec{}, {.values_sink = Into({.name = name})}, Bytes(Iota(10))));
  messages.push_back({});
  FakeTransport writing(&context_, Stream(), std::move(messages));
  Gate reached;
  Gate go_on;
  writing.before_read = [&](size_t i) {
    if (i != 1) return;
    reached.Arrive();
    EXPECT_TRUE(go_on.WaitFor(1));
  };
  writing.Start();
  ASSERT_TRUE(reached.WaitFor(1));
  const PlaceNames places = {.values = ArraySlice{.name = name}};
  EXPECT_EQ(ErrorReason(RunOne(Unary(), Begin(ReduceOf(), places))), "ARRAY_IN_USE");
  writing.session().OnCancel();
  go_on.Arrive();
  ASSERT_TRUE(writing.Wait());
  EXPECT_TRUE(RunOne(Unary(), Begin(ReduceOf(), places)).ok());
}

TEST_F(SessionPlacesTest, ManyCallsOnOneArrayEndWellOrAreToldThatItIsInUse) {
  const std::string name = MakeIota(10'000);
  std::atomic<int> well{0};
  const auto call = [&](unsigned seed) {
    for (int i = 0; i < 40; ++i) {
      const uint64_t first = (seed * 131 + static_cast<unsigned>(i) * 977) % 9'000;
      const ArraySlice slice = {.name = name, .first_item = first, .num_items = 1'000};
      PlaceNames places = {.values = slice};
      if (i % 3 != 0) places.values_sink = i % 3 == 1 ? Into(slice) : NewArray();
      std::vector<Message> messages;
      messages.push_back(Begin(ScanOf(), places));
      FakeTransport transport(&context_, Unary(), std::move(messages));
      ASSERT_TRUE(transport.Run());
      const absl::Status& status = transport.result().status;
      if (status.ok()) ++well;
      if (!status.ok()) {
        EXPECT_EQ(ErrorReason(status), "ARRAY_IN_USE") << status;
      }
      if (transport.result().new_values) {
        EXPECT_TRUE(store_->Delete({.name = "test", .connection = "test:1"}, transport.result().new_values->name).ok());
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(call, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(well, 0);
  EXPECT_EQ(NumArrays(), 1u);
  EXPECT_TRUE(
      RunOne(Unary(), Begin(ScanOf(), {.values = ArraySlice{.name = name}, .values_sink = Into({.name = name})})).ok());
}

}  // namespace
}  // namespace prefixd
