// The resident arrays: how long they live, and what of them is in use.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/array_store_fixture.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

using ::testing::HasSubstr;

// ---- Time ----------------------------------------------------------------------------------------------------------
TEST_F(ArrayStoreTest, AnArrayExpiresAfterItsTtl) {
  Open(Whole());
  const std::string name = Make(Known("alice"), 10, {.ttl = absl::Seconds(10)});
  const std::string longer = Make(Known("alice"), 10, {.ttl = absl::Seconds(100)});
  seconds_ += 9;
  EXPECT_TRUE(Use(Known("alice"), name).ok());
  EXPECT_EQ(store_->Get(Known("alice"), name)->expire_time, absl::FromUnixSeconds(1'000'010));
  ++seconds_;
  const absl::Status status = Use(Known("alice"), name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorReason(status), "ARRAY_EXPIRED");
  EXPECT_EQ(ErrorField(status), "values.name");
  EXPECT_EQ(ErrorReason(store_->Renew(Known("alice"), name, {}).status()), "ARRAY_EXPIRED");
  EXPECT_EQ(ErrorReason(store_->Delete(Known("alice"), name)), "ARRAY_EXPIRED");
  EXPECT_EQ(ReasonOfGet(Known("bob"), name), "ARRAY_UNKNOWN");
  EXPECT_EQ(store_->List(Known("alice"), "", 10)->arrays.size(), 1u);
  EXPECT_TRUE(store_->Get(Known("alice"), longer).ok());
  EXPECT_TRUE(WaitForArrays(*store_, 1));
}

TEST_F(ArrayStoreTest, WhatHasExpiredMakesRoomForWhatIsNew) {
  Open(Whole(1));
  Make(Known("alice"), 10, {.ttl = absl::Hours(1)});
  EXPECT_FALSE(TryMake(Known("bob"), 10).ok());
  seconds_ += 3600;
  for (int i = 0; i < 1000 && !TryMake(Known("bob"), 10).ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // Its thread has it, and is about to let go of it.
  }
  EXPECT_EQ(store_->List(Known("bob"), "", 10)->arrays.size(), 1u);
}

TEST_F(ArrayStoreTest, RenewedItLivesLongerOrLess) {
  Open(Whole());
  const std::string name = Make(Known("alice"), 10, {.ttl = absl::Seconds(10)});
  seconds_ += 5;
  const ArrayInfo info = *store_->Renew(Known("alice"), name, {.ttl = absl::Seconds(20), .renew_on_use = true});
  EXPECT_EQ(info.create_time, absl::FromUnixSeconds(1'000'000));
  EXPECT_EQ(info.expire_time, absl::FromUnixSeconds(1'000'025));
  EXPECT_EQ(info.ttl, absl::Seconds(20));
  EXPECT_TRUE(info.renew_on_use);
  seconds_ += 10;
  EXPECT_EQ(store_->Renew(Known("alice"), name, {})->ttl, store_->limits().default_ttl);
  EXPECT_FALSE(store_->Renew(Known("alice"), name, {.ttl = absl::Seconds(1)})->renew_on_use);
  seconds_ += 1;
  EXPECT_EQ(ReasonOfGet(Known("alice"), name), "ARRAY_EXPIRED");
}

TEST_F(ArrayStoreTest, EachUseAndItsEndBeginTheTtlAnewWhereThatWasAskedFor) {
  Open(Whole());
  const auto expiry = [&](const std::string& name) {
    return absl::ToUnixSeconds(store_->Get(Known("alice"), name)->expire_time) - 1'000'000;
  };
  const std::string renewed = Make(Known("alice"), 10, {.ttl = absl::Seconds(10), .renew_on_use = true});
  const std::string other = Make(Known("alice"), 10, {.ttl = absl::Seconds(100)});
  seconds_ += 5;
  {
    auto use = Use(Known("alice"), renewed);
    auto other_use = Use(Known("alice"), other);
    ASSERT_TRUE(use.ok() && other_use.ok());
    EXPECT_EQ(expiry(renewed), 15);
    seconds_ += 4;
    EXPECT_EQ(expiry(renewed), 15);
  }
  EXPECT_EQ(expiry(renewed), 19);
  EXPECT_EQ(expiry(other), 100);
  seconds_ += 10;
  EXPECT_EQ(ReasonOfGet(Known("alice"), renewed), "ARRAY_EXPIRED");
}

TEST_F(ArrayStoreTest, WhatIsRenewedOnUseDoesNotExpireWhileItIsUsed) {
  Open(Whole());
  const std::string name = Make(Known("alice"), 10, {.ttl = absl::Seconds(10), .renew_on_use = true});
  {
    auto use = Use(Known("alice"), name);
    seconds_ += 100;
    EXPECT_TRUE(store_->Get(Known("alice"), name).ok());
    seconds_ += 100;
  }
  seconds_ += 9;
  EXPECT_TRUE(store_->Get(Known("alice"), name).ok());
  ++seconds_;
  EXPECT_EQ(ReasonOfGet(Known("alice"), name), "ARRAY_EXPIRED");
}

TEST_F(ArrayStoreTest, WhatIsNotRenewedExpiresInItsUseWhichGoesOn) {
  Open(Whole());
  const std::string name = Make(Known("alice"), 10, {.ttl = absl::Seconds(10)});
  {
    auto use = Use(Known("alice"), name);
    seconds_ += 10;
    EXPECT_EQ(ReasonOfGet(Known("alice"), name), "ARRAY_EXPIRED");
    std::fill_n(use->data(), 40, std::byte{1});  // A sanitizer sees whether it is there.
    EXPECT_EQ(store_->in_use().requests, 1u);
  }
  EXPECT_TRUE(WaitForArrays(*store_, 0));
}

TEST_F(ArrayStoreTest, ItsThreadTakesAwayWhatHasExpired) {
  store_.emplace(Whole());  // With the real clock.
  Make(Known("alice"));
  for (int i = 1; i <= 5; ++i) Make(Known("alice"), 10, {.ttl = absl::Milliseconds(10 * i)});
  EXPECT_TRUE(WaitForArrays(*store_, 1));
}

TEST_F(ArrayStoreTest, ItsThreadNoticesThatATimeIsNowEarlier) {
  store_.emplace(Whole());
  std::string name = Make(Known("alice"));
  for (int i = 0; i < 10; ++i) {  // From the second on it has slept for the longer time.
    const std::string longer = Make(Known("alice"));
    EXPECT_TRUE(store_->Renew(Known("alice"), name, {.ttl = absl::Milliseconds(2)}).ok());
    ASSERT_TRUE(WaitForArrays(*store_, 1));
    EXPECT_EQ(ReasonOfGet(Known("alice"), name), "ARRAY_EXPIRED");
    name = longer;
  }
}

// ---- Uses ----------------------------------------------------------------------------------------------------------
TEST_F(ArrayStoreTest, ASliceLiesWithinTheArray) {
  Open(Whole());
  const std::string name = Make(Known("alice"), 10);
  EXPECT_EQ(Use(Known("alice"), name)->num_items(), 10u);
  EXPECT_EQ(Use(Known("alice"), name, Access::kRead, 3)->num_items(), 7u);
  EXPECT_EQ(Use(Known("alice"), name, Access::kRead, 3, 7)->num_items(), 7u);
  EXPECT_EQ(Use(Known("alice"), name, Access::kRead, 10)->num_items(), 0u);
  EXPECT_EQ(Use(Known("alice"), name, Access::kRead, 10, 0)->num_items(), 0u);
  EXPECT_EQ(Use(Known("alice"), Make(Known("alice"), 0))->num_items(), 0u);
  struct Bad {
    uint64_t first_item;
    std::optional<uint64_t> num_items;
    std::string field;
  };
  for (const Bad& bad : std::vector<Bad>{{11, {}, "values.first_item"},
                                         {kHuge, 0, "values.first_item"},
                                         {kHuge, kHuge, "values.first_item"},
                                         {3, 8, "values.num_items"},
                                         {10, 1, "values.num_items"},
                                         {1, kHuge, "values.num_items"}}) {
    const absl::Status status = Use(Known("alice"), name, Access::kRead, bad.first_item, bad.num_items).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ErrorReason(status), "ARRAY_RANGE");
    EXPECT_EQ(ErrorField(status), bad.field);
    EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("element ", bad.first_item)));
  }
}

TEST_F(ArrayStoreTest, ReadersShareAndAWriterHasItsPartForItself) {
  Open(Whole());
  const std::string name = Make(At("a"), 10);
  auto first = Use(At("a"), name, Access::kRead, 0, 5);
  auto second = Use(At("b"), name, Access::kRead, 0, 10);
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status refused = Use(At("a"), name, Access::kWrite, 9, 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ErrorReason(refused), "ARRAY_IN_USE");
  EXPECT_EQ(ErrorField(refused), "values");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("uses some of the 1 elements from element 9"));
  *second = ArrayUse();
  auto writer = Use(At("a"), name, Access::kWrite, 5, 5);
  ASSERT_TRUE(writer.ok());
  EXPECT_THAT(std::string(Use(At("a"), name, Access::kRead, 4, 2).status().message()),
              HasSubstr("another call writes"));
  EXPECT_TRUE(Use(At("a"), name, Access::kRead, 4, 1).ok());
}

TEST_F(ArrayStoreTest, AUseOfNoItemsDisturbsNobody) {
  Open(Whole());
  const std::string name = Make(At("a"), 10);
  auto none = Use(At("a"), name, Access::kWrite, 5, 0);
  auto writer = Use(At("a"), name, Access::kWrite);
  EXPECT_TRUE(none.ok() && writer.ok());
  EXPECT_TRUE(Use(At("a"), name, Access::kWrite, 5, 0).ok());
  EXPECT_TRUE(Use(At("a"), name, Access::kRead, 0, 0).ok());
}

TEST_F(ArrayStoreTest, AUseMovesAndEndsOnce) {
  Open(Whole());
  const std::string one = Make(At("a"), 10);
  const std::string other = Make(At("a"), 10);
  {
    ArrayUse first = *Use(At("a"), one, Access::kWrite);
    ArrayUse moved = std::move(first);
    EXPECT_FALSE(Use(At("a"), one).ok());
    first = *Use(At("a"), other, Access::kWrite);
    moved = std::move(first);
    EXPECT_TRUE(Use(At("a"), one).ok());
    EXPECT_FALSE(Use(At("a"), other).ok());
    ArrayUse& itself = moved;
    moved = std::move(itself);
    EXPECT_FALSE(Use(At("a"), other).ok());
    EXPECT_EQ(moved.num_items(), 10u);
  }
  EXPECT_TRUE(Use(At("a"), one, Access::kWrite).ok());
  EXPECT_TRUE(Use(At("a"), other, Access::kWrite).ok());
}

TEST_F(ArrayStoreTest, DeletedInItsUseItKeepsItsMemoryAndItsCharge) {
  Open(Whole());
  const std::string name = Make(Known("alice"), 1000, {.ttl = absl::Seconds(10), .renew_on_use = true});
  auto use = Use(Known("alice"), name, Access::kWrite);
  auto second = Use(Known("alice"), name, Access::kWrite, 0, 0);
  ASSERT_TRUE(use.ok() && second.ok());
  ASSERT_TRUE(store_->Delete(Known("alice"), name).ok());
  EXPECT_EQ(ReasonOfGet(Known("alice"), name), "ARRAY_EXPIRED");
  EXPECT_TRUE(store_->List(Known("alice"), "", 10)->arrays.empty());
  std::fill_n(use->data(), 4000, std::byte{1});
  EXPECT_EQ(store_->in_use().bytes, 4096u + ArrayStore::kBytesPerArray);
  *use = ArrayUse();
  EXPECT_EQ(store_->in_use().requests, 1u);
  *second = ArrayUse();
  EXPECT_EQ(store_->in_use().requests, 0u);
  EXPECT_EQ(store_->in_use().bytes, 0u);
  EXPECT_EQ(ReasonOfGet(Known("alice"), name), "ARRAY_EXPIRED");
}

TEST_F(ArrayStoreTest, RandomUsesFollowANaiveModel) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(StrCat("seed ", seed));
  std::mt19937 random(seed);
  constexpr uint64_t kItems = 12;
  Open(Whole());
  const std::string name = Make(At("a"), kItems);
  struct Model {
    ArrayUse use;
    Access access;
  };
  std::vector<Model> uses;
  for (int step = 0; step < 20'000; ++step) {
    if (!uses.empty() && random() % 2 == 0) {
      std::swap(uses[random() % uses.size()], uses.back());
      uses.pop_back();
      continue;
    }
    const uint64_t first = random() % (kItems + 1);
    const uint64_t num_items = random() % (std::min<uint64_t>(kItems - first, 4) + 1);
    const Access access = random() % 2 == 0 ? Access::kRead : Access::kWrite;
    bool is_free = true;
    for (uint64_t item = first; item < first + num_items; ++item) {
      for (const Model& other : uses) {
        const bool has_it = item >= other.use.first_item() && item - other.use.first_item() < other.use.num_items();
        if (has_it && (access == Access::kWrite || other.access == Access::kWrite)) is_free = false;
      }
    }
    auto use = Use(At("a"), name, access, first, num_items);
    ASSERT_EQ(use.ok(), is_free) << "step " << step << ": " << num_items << " items from " << first;
    if (use.ok()) uses.push_back({.use = *std::move(use), .access = access});
  }
}

// ---- Threads -------------------------------------------------------------------------------------------------------
// What gives memory back may take its time, and others go on meanwhile.
TEST_F(ArrayStoreTest, NoMemoryIsGivenBackUnderTheLock) {
  Open(Whole());
  Gate gate;
  std::atomic<int> released{0};
  std::atomic<bool> were_stopped{false};
  std::vector<std::thread> others;
  std::byte memory{};
  const auto make = [&] {
    auto array = *Reserve(Known("alice"), {1}, {.ttl = absl::Hours(1)});
    array->TakeMemory(Buffer(&memory, 4, [&](void*) {
      const int count = ++released;
      others.emplace_back([&] {
        store_->List(Known("bob"), "", 1).IgnoreError();
        gate.Arrive();
      });
      if (!gate.WaitFor(count)) were_stopped = true;
    }));
    return array;
  };
  const std::string deleted = store_->Publish(make())->name;
  EXPECT_TRUE(store_->Delete(Known("alice"), deleted).ok());
  EXPECT_EQ(released, 1);
  const std::string used = store_->Publish(make())->name;
  {
    auto use = Use(Known("alice"), used);
    EXPECT_TRUE(store_->Delete(Known("alice"), used).ok());
    EXPECT_EQ(released, 1);
  }
  EXPECT_EQ(released, 2);
  const std::string expired = store_->Publish(make())->name;
  seconds_ += 3600;
  EXPECT_EQ(ReasonOfGet(Known("alice"), expired), "ARRAY_EXPIRED");
  EXPECT_TRUE(WaitForArrays(*store_, 0));
  EXPECT_EQ(released, 3);
  auto late = make();
  store_->Close(Error(absl::StatusCode::kUnavailable, "DRAINING", "", "stopping"));
  EXPECT_FALSE(store_->Publish(std::move(late)).ok());
  EXPECT_EQ(released, 4);
  EXPECT_FALSE(were_stopped);
  for (std::thread& other : others) other.join();
}

// Who has a part for himself writes it without a lock: the thread sanitizer sees where two have.
TEST_F(ArrayStoreTest, ThreadsMakeUseAndDeleteAtOnce) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(StrCat("seed ", seed));
  store_.emplace(Whole(/*arrays=*/40));
  const std::string shared = Make(At("a"), 64, {.renew_on_use = true});
  std::fill_n(Use(At("a"), shared, Access::kWrite)->data(), 256, std::byte{0});
  std::atomic<int> strange{0};
  const auto expect = [&](const absl::Status& status, const std::set<std::string>& reasons) {
    if (!status.ok() && !reasons.contains(ErrorReason(status))) ++strange;
  };
  std::vector<std::unique_ptr<Lane>> lanes;  // They outlive the arrays.
  for (int i = 0; i < 6; ++i) lanes.push_back(*device_->CreateLane());
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < lanes.size(); ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(seed + i);
      const Caller caller = i % 2 == 0 ? Known(StrCat("caller", i % 4)) : At("a", static_cast<int>(i));
      Lane& lane = *lanes[i];
      std::vector<std::string> names;
      for (int round = 0; round < 1000; ++round) {
        auto array = store_->Reserve(
            caller, {.dtype = DType::kU8,
                     .shape = {random() % 1000},
                     .lifetime = {.ttl = absl::Milliseconds(1 + random() % 20), .renew_on_use = random() % 2 == 0}});
        expect(array.status(), {"ARRAY_BUDGET"});
        if (array.ok()) {
          (*array)->TakeMemory(*lane.Allocate((*array)->size_bytes()));
          names.push_back(store_->Publish(*std::move(array))->name);
        }
        {
          const Access access = random() % 2 == 0 ? Access::kRead : Access::kWrite;
          auto part = store_->Use(caller, {.name = shared, .first_item = random() % 64, .num_items = 1}, access, "x");
          expect(part.status(), {"ARRAY_IN_USE"});
          if (part.ok() && access == Access::kWrite) *part->data() = std::byte{1};
          if (part.ok() && *part->data() == std::byte{0xff}) ++strange;
        }
        auto whole = store_->Use(caller, {.name = shared}, Access::kWrite, "values");
        expect(whole.status(), {"ARRAY_IN_USE"});
        if (whole.ok()) std::fill_n(whole->data(), 64, std::byte{1});
        if (names.empty()) continue;
        const std::string name = names[random() % names.size()];
        auto use = store_->Use(caller, {.name = name}, Access::kWrite, "values");
        expect(use.status(), {"ARRAY_EXPIRED", "ARRAY_UNKNOWN"});
        if (use.ok()) std::fill_n(use->data(), use->num_items(), std::byte{2});
        expect(store_->Get(caller, name).status(), {"ARRAY_EXPIRED", "ARRAY_UNKNOWN"});
        expect(store_->List(caller, "", 10).status(), {"LIST_NEEDS_NAME"});
        if (random() % 2 == 0) expect(store_->Delete(caller, name), {"ARRAY_EXPIRED", "ARRAY_UNKNOWN"});
        if (names.size() > 10) names.erase(names.begin());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(strange, 0);
  EXPECT_TRUE(store_->Delete(At("a"), shared).ok());
  EXPECT_TRUE(WaitForArrays(*store_, 0));
  EXPECT_EQ(store_->in_use().bytes, 0u);
}

}  // namespace
}  // namespace prefixd
