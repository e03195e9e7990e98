// The resident arrays: how they are made, whose they are, and what they are charged for.
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/array_store_fixture.h"

namespace prefixd {
namespace {

using ::testing::HasSubstr;

// ---- Making --------------------------------------------------------------------------------------------------------
TEST_F(ArrayStoreTest, AnArrayIsWhatWasAskedFor) {
  Open(Whole());
  auto array = *Reserve(Known("alice"), {3, 5}, {.ttl = absl::Seconds(7), .renew_on_use = true});
  EXPECT_EQ(array->num_items(), 15u);
  EXPECT_EQ(array->size_bytes(), 60u);
  array->TakeMemory(*lane_->Allocate(array->size_bytes()));
  std::byte* const data = array->data();
  const ArrayInfo made = *store_->Publish(std::move(array));
  const ArrayInfo info = *store_->Get(Known("alice"), made.name);
  EXPECT_EQ(info.name, made.name);
  EXPECT_EQ(info.dtype, DType::kI32);
  EXPECT_EQ(info.shape, (std::vector<uint64_t>{3, 5}));
  EXPECT_EQ(info.num_items, 15u);
  EXPECT_EQ(info.num_bytes, 256u);
  EXPECT_EQ(info.create_time, absl::FromUnixSeconds(1'000'000));
  EXPECT_EQ(info.expire_time, absl::FromUnixSeconds(1'000'007));
  EXPECT_EQ(info.ttl, absl::Seconds(7));
  EXPECT_TRUE(info.renew_on_use);
  auto use = Use(Known("alice"), info.name, Access::kWrite, 4, 6);
  ASSERT_TRUE(use.ok()) << use.status();
  EXPECT_EQ(use->data(), data + 16);
  EXPECT_EQ(use->first_item(), 4u);
  EXPECT_EQ(use->num_items(), 6u);
  EXPECT_EQ(use->array().num_items(), 15u);
}

TEST_F(ArrayStoreTest, ShapesHaveOneOrTwoDimensionsAndBytesThatCanBeCounted) {
  Open(Whole());
  EXPECT_EQ((*Reserve(Known("alice"), {0}))->num_items(), 0u);
  EXPECT_EQ((*Reserve(Known("alice"), {kHuge, 0}))->num_items(), 0u);
  EXPECT_EQ((*Reserve(Known("alice"), {0, kHuge}))->num_items(), 0u);
  const std::vector<std::vector<uint64_t>> bad = {
      {}, {1, 2, 3}, {kHuge}, {kHuge / 4}, {uint64_t{1} << 32, uint64_t{1} << 32}, {kHuge, kHuge}, {2, kHuge / 4}};
  for (const std::vector<uint64_t>& shape : bad) {
    const absl::Status status = Reserve(Known("alice"), shape).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << ::testing::PrintToString(shape);
    EXPECT_EQ(ErrorReason(status), "SHAPE") << status;
    EXPECT_EQ(ErrorField(status), "shape");
  }
  const absl::Status nested =
      store_->Reserve(Known("alice"), {.dtype = DType::kU8, .shape = {}}, "sink.new_array").status();
  EXPECT_EQ(ErrorField(nested), "sink.new_array.shape");
}

TEST_F(ArrayStoreTest, LifetimesArePositiveAndWithinTheServersMost) {
  Open({.arrays = 10, .bytes = kPlenty, .default_ttl = absl::Minutes(3), .max_ttl = absl::Hours(1)});
  EXPECT_EQ(TryMake(Known("alice"), 1)->ttl, absl::Minutes(3));
  EXPECT_EQ(TryMake(Known("alice"), 1, {.ttl = absl::Hours(1)})->ttl, absl::Hours(1));
  const std::string name = Make(Known("alice"));
  for (const absl::Duration ttl : {absl::ZeroDuration(), absl::Seconds(-1), absl::Hours(1) + absl::Nanoseconds(1),
                                   absl::InfiniteDuration(), -absl::InfiniteDuration()}) {
    for (const absl::Status& status : {TryMake(Known("alice"), 1, {.ttl = ttl}).status(),
                                       store_->Renew(Known("alice"), name, {.ttl = ttl}).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << ttl;
      EXPECT_EQ(ErrorReason(status), "LIFETIME");
      EXPECT_EQ(ErrorField(status), "lifetime.ttl");
    }
  }
}

TEST_F(ArrayStoreTest, WhatIsDroppedBeforeItIsPublishedNeverWas) {
  Open(Whole());
  auto array = *Reserve(Known("alice"), {1000});
  EXPECT_EQ(store_->in_use().requests, 1u);
  EXPECT_EQ(store_->in_use().bytes, 4096u + ArrayStore::kBytesPerArray);
  array = nullptr;
  EXPECT_EQ(store_->in_use().requests, 0u);
  EXPECT_EQ(store_->in_use().bytes, 0u);
  EXPECT_TRUE(store_->List(Known("alice"), "", 10)->arrays.empty());
}

TEST_F(ArrayStoreTest, ClosedRefusesNewArraysAndUses) {
  Open(Whole());
  const std::string name = Make(Known("alice"));
  auto use = Use(Known("alice"), name);
  auto reserved = *Reserve(Known("alice"), {1});
  reserved->TakeMemory(*lane_->Allocate(4));
  store_->Close(Error(absl::StatusCode::kUnavailable, "DRAINING", "", "stopping"));
  EXPECT_EQ(ErrorReason(Reserve(Known("alice"), {1}).status()), "DRAINING");
  EXPECT_EQ(ErrorReason(store_->Publish(std::move(reserved)).status()), "DRAINING");
  EXPECT_EQ(ErrorReason(Use(Known("alice"), name).status()), "DRAINING");
  EXPECT_EQ(use->num_items(), 10u);
  EXPECT_TRUE(store_->Get(Known("alice"), name).ok());
  EXPECT_TRUE(store_->Delete(Known("alice"), name).ok());
  { ArrayUse ended = *std::move(use); }
  EXPECT_EQ(store_->in_use().requests, 0u);
}

// ---- Budgets -------------------------------------------------------------------------------------------------------
TEST_F(ArrayStoreTest, RefusesTheArrayThatIsOneTooMany) {
  Open(Whole(/*arrays=*/2));
  const std::string name = Make(Known("alice"));
  Make(Known("bob"));
  const absl::Status status = TryMake(Known("carol"), 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReason(status), "ARRAY_BUDGET");
  EXPECT_EQ(QuotaSubject(status), "server");
  EXPECT_THAT(std::string(status.message()), HasSubstr("2 of 2 arrays (--max-arrays): delete"));
  ASSERT_TRUE(store_->Delete(Known("alice"), name).ok());
  EXPECT_TRUE(TryMake(Known("carol"), 1).ok());
}

TEST_F(ArrayStoreTest, RefusesTheByteThatIsOneTooMany) {
  Open(Whole(100, 2 * (ArrayStore::kBytesPerArray + 256)));
  Make(Known("alice"), 64);
  const absl::Status status = TryMake(Known("alice"), 65).status();
  EXPECT_EQ(ErrorReason(status), "ARRAY_BUDGET");
  EXPECT_EQ(QuotaSubject(status), "server");
  EXPECT_THAT(std::string(status.message()), HasSubstr("512 bytes are needed"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(" of 2560 (--max-array-bytes): delete"));
  Make(Known("alice"), 64);
  const absl::Status never = TryMake(Known("alice"), kPlenty).status();
  EXPECT_EQ(ErrorReason(never), "ARRAY_BUDGET");
  EXPECT_THAT(std::string(never.message()), HasSubstr("never fits"));
}

TEST_F(ArrayStoreTest, ChargesWholeGranulesAndNeverNone) {
  Open(Whole());
  for (const auto& [num_items, num_bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, 256}, {1, 256}, {64, 256}, {65, 512}, {1000, 4096}}) {
    const uint64_t before = store_->in_use().bytes;
    EXPECT_EQ(TryMake(Known("alice"), num_items)->num_bytes, num_bytes);
    EXPECT_EQ(store_->in_use().bytes - before, num_bytes + ArrayStore::kBytesPerArray);
  }
}

TEST_F(ArrayStoreTest, EachCallerHasHisShareWhateverConnectionHeUses) {
  Open({.arrays = 8, .bytes = kPlenty, .share_percent = 50});
  for (int i = 0; i < 4; ++i) Make(At("10.0.0.1", i));
  const absl::Status status = TryMake(At("10.0.0.1", 5), 1).status();
  EXPECT_EQ(ErrorReason(status), "ARRAY_BUDGET");
  EXPECT_EQ(QuotaSubject(status), "10.0.0.1");
  EXPECT_THAT(std::string(status.message()), HasSubstr("4 of 8 arrays (--max-arrays)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("caller 10.0.0.1 may have 50 %"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("(--caller-share-percent)"));
  Make(Known("bob"));
  Make(Known("bob"));
  EXPECT_EQ(QuotaSubject(TryMake(Known("bob"), 1).status()), "bob");
}

TEST_F(ArrayStoreTest, EachCallerHasHisShareOfTheBytes) {
  Open({.arrays = 100, .bytes = 20 * 1024, .share_percent = 50});
  Make(Known("alice"), 2048);  // 9 KiB of 10.
  const absl::Status status = TryMake(Known("alice"), 256).status();
  EXPECT_EQ(ErrorReason(status), "ARRAY_BUDGET");
  EXPECT_EQ(QuotaSubject(status), "alice");
  EXPECT_THAT(std::string(status.message()), HasSubstr("(--max-array-bytes)"));
  EXPECT_TRUE(TryMake(Known("bob"), 1024).ok());
}

TEST_F(ArrayStoreTest, AlsoTheFirstArrayOfACallerIsWithinHisShare) {
  Open({.arrays = 10, .bytes = uint64_t{64} << 20, .share_percent = 50});
  constexpr uint64_t kMegaItems = uint64_t{1} << 18;  // Elements of i32.
  EXPECT_EQ(ErrorReason(TryMake(Known("alice"), 33 * kMegaItems).status()), "ARRAY_BUDGET");
  EXPECT_TRUE(TryMake(Known("alice"), 31 * kMegaItems).ok());
  EXPECT_EQ(ErrorReason(TryMake(Known("bob"), 17 * kMegaItems).status()), "ARRAY_BUDGET");
  EXPECT_TRUE(TryMake(Known("bob"), 15 * kMegaItems).ok());
}

TEST_F(ArrayStoreTest, ScratchIsBytesAndNoArray) {
  Open(Whole(/*arrays=*/0, 10'000));
  {
    const auto ticket = store_->ChargeScratch(Known("alice"), 1);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_EQ(store_->in_use().requests, 0u);
    EXPECT_EQ(store_->in_use().bytes, 256 + ArrayStore::kBytesPerArray);
    for (const uint64_t num_bytes : {uint64_t{10'000}, kHuge}) {
      const absl::Status status = store_->ChargeScratch(Known("alice"), num_bytes).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(ErrorReason(status), "ARRAY_BUDGET");
    }
  }
  EXPECT_EQ(store_->in_use().bytes, 0u);
}

// ---- Names and owners ----------------------------------------------------------------------------------------------
TEST_F(ArrayStoreTest, ToOthersAnArrayOfACallerWithANameDoesNotExist) {
  Open(Whole());
  const std::string name = Make(Known("alice"));
  std::string unknown = name;
  unknown.back() = unknown.back() == '0' ? '1' : '0';
  const absl::Status never = store_->Get(Known("bob"), unknown).status();
  EXPECT_EQ(never.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorReason(never), "ARRAY_UNKNOWN");
  EXPECT_EQ(ErrorField(never), "name");
  // An address is not the caller whose name looks like it.
  for (const Caller& other : {Known("bob"), At("alice"), At("10.0.0.1"), Known("")}) {
    EXPECT_EQ(store_->Get(other, name).status(), never);
    EXPECT_EQ(store_->Renew(other, name, {}).status(), never);
    EXPECT_EQ(store_->Delete(other, name), never);
    const absl::Status use = Use(other, name).status();
    EXPECT_EQ(ErrorReason(use), "ARRAY_UNKNOWN");
    EXPECT_EQ(ErrorField(use), "values.name");
    EXPECT_EQ(use.message(), never.message());
  }
  EXPECT_TRUE(store_->Get(Known("alice"), name).ok());
  ASSERT_TRUE(store_->Delete(Known("alice"), name).ok());
  EXPECT_EQ(store_->Get(Known("bob"), name).status(), never);
  EXPECT_EQ(ReasonOfGet(Known("alice"), name), "ARRAY_EXPIRED");
}

TEST_F(ArrayStoreTest, WhoKnowsTheNameMayUseAnArrayWhoseCallerHasNone) {
  Open(Whole());
  for (const Caller& other : {At("10.0.0.1", 2), At("10.0.0.2"), Known("bob")}) {
    const std::string name = Make(At("10.0.0.1", 1));
    EXPECT_TRUE(store_->Get(other, name).ok());
    EXPECT_TRUE(store_->Renew(other, name, {}).ok());
    EXPECT_TRUE(Use(other, name, Access::kWrite).ok());
    EXPECT_TRUE(store_->Delete(other, name).ok());
    EXPECT_EQ(ReasonOfGet(other, name), "ARRAY_EXPIRED");
    EXPECT_EQ(ReasonOfGet(At("10.0.0.3"), name), "ARRAY_EXPIRED");
  }
}

TEST_F(ArrayStoreTest, WhatIsNoNameAndWhatIsAnotherServers) {
  Open(Whole());
  const std::string elsewhere = "arrays/0123456789abcdef-0123456789abcdef0123456789abcdef";
  for (const std::string& bad : {std::string(), std::string("arrays/"), std::string("x"), elsewhere + "0"}) {
    const absl::Status status = Use(Known("alice"), bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(ErrorReason(status), "ARRAY_NAME");
    EXPECT_EQ(ErrorField(status), "values.name");
    EXPECT_EQ(ReasonOfGet(Known("alice"), bad), "ARRAY_NAME");
  }
  EXPECT_EQ(store_->Delete(Known("alice"), elsewhere).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorReason(store_->Delete(Known("alice"), elsewhere)), "ARRAY_ELSEWHERE");
}

TEST_F(ArrayStoreTest, ListsHaveTheCallersOwnArraysInTheOrderOfTheirNames) {
  Open(Whole());
  std::set<std::string> names;
  for (int i = 0; i < 10; ++i) {
    names.insert(Make(Known("bob"), 10 + static_cast<uint64_t>(i)));
    Make(Known("alice"));
    Make(Known("carol"));
    Make(At("bob"));
  }
  std::vector<std::string> seen;
  std::vector<size_t> page_sizes;
  std::string from;
  do {
    const ArrayStore::Page page = *store_->List(Known("bob"), from, 3);
    for (const ArrayInfo& info : page.arrays) {
      EXPECT_EQ(info.num_items, store_->Get(Known("bob"), info.name)->num_items);
      seen.push_back(info.name);
    }
    page_sizes.push_back(page.arrays.size());
    from = page.next_name;
  } while (!from.empty());
  EXPECT_EQ(seen, std::vector<std::string>(names.begin(), names.end()));
  EXPECT_EQ(page_sizes, (std::vector<size_t>{3, 3, 3, 1}));
  EXPECT_EQ(store_->List(Known("bob"), "", 10)->next_name, "");
  EXPECT_EQ(store_->List(Known("bob"), "", 0)->arrays.size(), 1u);
  EXPECT_TRUE(store_->List(Known("bob"), "b", 10)->arrays.empty());
  EXPECT_TRUE(store_->List(Known("dave"), "", 10)->arrays.empty());
}

// The array at which the next page begins may be gone by then.
TEST_F(ArrayStoreTest, PagesGoOnBehindAnArrayThatIsGone) {
  Open(Whole());
  for (int i = 0; i < 4; ++i) Make(Known("bob"));
  const ArrayStore::Page all = *store_->List(Known("bob"), "", 10);
  const ArrayStore::Page first = *store_->List(Known("bob"), "", 2);
  ASSERT_TRUE(store_->Delete(Known("bob"), first.next_name).ok());
  const ArrayStore::Page second = *store_->List(Known("bob"), first.next_name, 2);
  ASSERT_EQ(second.arrays.size(), 1u);
  EXPECT_EQ(second.arrays[0].name, all.arrays[3].name);
}

TEST_F(ArrayStoreTest, OnlyCallersWithNamesHaveLists) {
  Open(Whole());
  Make(At("10.0.0.1"));
  const absl::Status status = store_->List(At("10.0.0.1"), "", 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrorReason(status), "LIST_NEEDS_NAME");
}

TEST_F(ArrayStoreTest, TheLastNamesThatAreGoneAreRemembered) {
  Open(Whole());
  std::deque<std::string> names;
  for (size_t i = 0; i <= ArrayStore::kMaxRemembered; ++i) {
    names.push_back(Make(At("a"), 0));
    ASSERT_TRUE(store_->Delete(At("a"), names.back()).ok());
  }
  EXPECT_EQ(ReasonOfGet(At("a"), names[0]), "ARRAY_UNKNOWN");
  EXPECT_EQ(ReasonOfGet(At("a"), names[1]), "ARRAY_EXPIRED");
  EXPECT_EQ(ReasonOfGet(At("a"), names.back()), "ARRAY_EXPIRED");
}

TEST_F(ArrayStoreTest, ManyCreationsAndDeletionsLeaveNothing) {
  Open(Whole(4));
  std::string first;
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = Make(i % 2 == 0 ? Known("alice") : At("a"), 4);
    if (i == 0) first = name;
    ASSERT_TRUE(store_->Delete(i % 2 == 0 ? Known("alice") : At("a"), name).ok());
  }
  EXPECT_EQ(store_->in_use().requests, 0u);
  EXPECT_EQ(store_->in_use().bytes, 0u);
  EXPECT_EQ(ReasonOfGet(Known("alice"), first), "ARRAY_UNKNOWN");
  EXPECT_TRUE(store_->List(Known("alice"), "", 1)->arrays.empty());
}

}  // namespace
}  // namespace prefixd
