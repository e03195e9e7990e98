// The compacts and differences that cpu_bench measures.
#include <string>

#include "base/status.h"
#include "tests/bench/cpu_peers.h"
#include "tests/bench/cpu_suite.h"

namespace prefixd::bench {
namespace {

constexpr const char* NameOf(Selector selector) {
  switch (selector) {
    case Selector::kPredicate:
      return "predicate";
    case Selector::kByteMask:
      return "byte mask";
    case Selector::kBitMask:
      return "bit mask";
  }
  FatalValue("NameOf", selector);
}

constexpr const char* NameOf(Kept kept) {
  switch (kept) {
    case Kept::kOnePercent:
      return " 1%";
    case Kept::kHalf:
      return "";
    case Kept::kAllButOnePercent:
      return " 99%";
  }
  FatalValue("NameOf", kept);
}

template <class T, Selector kSelector, bool kInvert, bool kIndices>
CompactArgs ArgsOf(const Data& data, const Select<T, kSelector, kInvert>& select) {
  CompactArgs args;
  args.dtype = kDTypeOf<T>;
  args.selector = kSelector;
  args.comparison = Comparison::kGreater;
  args.value = Value::Of(select.threshold);
  args.mask = kSelector == Selector::kPredicate ? nullptr : select.mask;
  args.invert = kInvert;
  args.in = select.in;
  args.num_items = data.num_items;
  args.values = data.values.data();
  args.indices = kIndices ? data.numbers.data() : nullptr;
  return args;
}

// Only predicates: the standard library has no word for a mask.
template <class T, class S>
void AddStd(Case* made, const T* in, const S& select, uint64_t n, T* out) {
  const auto is_kept = [select](const T& item) { return S{&item, nullptr, select.threshold}(0); };
  made->contenders.push_back(
      {kStd, Threads::kOne, [=] { return static_cast<uint64_t>(std::copy_if(in, in + n, out, is_kept) - out); }});
  made->contenders.push_back({kStdPar, Threads::kAnyNumber, [=] {
                                T* const end = std::copy_if(std::execution::par, in, in + n, out, is_kept);
                                return static_cast<uint64_t>(end - out);
                              }});
}

template <class T, Selector kSelector, bool kInvert = false, bool kIndices = false, Beside kBeside = Beside::kAll>
void AddCase(Suite& suite, Kept kept = Kept::kHalf) {
  const std::string name = StrCat("compact ", Name(kDTypeOf<T>), " ", NameOf(kSelector), NameOf(kept),
                                  kInvert ? " inverted" : "", kIndices ? " with indices" : "");
  if (!suite.Wanted(name)) return;
  const Data& data = suite.data();
  const uint64_t n = data.num_items;
  const T* const in = data.In<T>();
  T* const out = data.values.As<T>();
  uint64_t* const indices = data.numbers.As<uint64_t>();
  const bool by_bit = kSelector == Selector::kBitMask;
  const Select<T, kSelector, kInvert> select = {in, by_bit ? data.bit_mask.As<uint8_t>() : data.ByteMask(kept),
                                                ThresholdOf<T>(kept)};
  const uint64_t count = CompactByLoop<kIndices>(in, select, n, out, indices);
  const double mask_bytes = kSelector == Selector::kPredicate ? 0 : static_cast<double>(n) / (by_bit ? 8 : 1);
  const double kept_bytes = static_cast<double>(count) * (sizeof(T) + (kIndices ? sizeof(uint64_t) : 0));
  Case made = {.name = name,
               .bytes = static_cast<double>(n) * sizeof(T) + mask_bytes + kept_bytes,
               .copy_bytes = n * sizeof(T),
               .value_bytes = n * sizeof(T),
               .number_bytes = kIndices ? n * sizeof(uint64_t) : 0};
  const CompactArgs args = ArgsOf<T, kSelector, kInvert, kIndices>(data, select);
  made.contenders = {{kLoop, Threads::kOne, [=] { return CompactByLoop<kIndices>(in, select, n, out, indices); }},
                     {kPrefixd, Threads::kAnyNumber, [=, &suite] {
                        uint64_t found = 0;
                        CompactArgs call = args;
                        call.count = &found;
                        Check(suite.lane().Compact(call));
                        return found;
                      }}};
  if constexpr (kBeside == Beside::kAll) {
    made.contenders.push_back(
        {kTbb, Threads::kAnyNumber, [=] { return CompactByTbb<kIndices>(in, select, n, out, indices); }});
    if constexpr (kSelector == Selector::kPredicate && !kIndices) AddStd(&made, in, select, n, out);
  }
  suite.Add(made);
}

template <class T>
void AddSelectors(Suite& suite) {
  AddCase<T, Selector::kPredicate>(suite);
  AddCase<T, Selector::kByteMask>(suite);
  AddCase<T, Selector::kBitMask>(suite);
}

template <class T, Selector kSelector>
void AddEveryForm(Suite& suite) {
  if constexpr (kHasPeers<T>) {
    AddCase<T, kSelector, false, false, Beside::kLoop>(suite);
    AddCase<T, kSelector, true, false, Beside::kLoop>(suite);
    AddCase<T, kSelector, false, true, Beside::kLoop>(suite);
  }
}

template <class T, Beside kBeside = Beside::kAll>
void AddDifferenceCase(Suite& suite) {
  const uint64_t n = suite.data().num_items;
  const T* const in = suite.data().In<T>();
  T* const out = suite.data().values.As<T>();
  DifferenceArgs args;
  args.dtype = kDTypeOf<T>;
  args.in = in;
  args.out = out;
  args.num_items = n;
  const auto returning_0 = [](auto work) {
    return [work] {
      work();
      return uint64_t{0};
    };
  };
  Case made = {.name = StrCat("difference ", Name(args.dtype)),
               .bytes = 2.0 * static_cast<double>(n) * sizeof(T),
               .copy_bytes = n * sizeof(T),
               .value_bytes = n * sizeof(T)};
  made.contenders = {
      {kLoop, Threads::kOne, returning_0([=] { DifferenceByLoop(in, out, n); })},
      {kPrefixd, Threads::kAnyNumber, returning_0([=, &suite] { Check(suite.lane().Difference(args)); })}};
  if constexpr (kBeside == Beside::kAll) {
    made.contenders.push_back(
        {kStd, Threads::kOne, returning_0([=] { std::adjacent_difference(in, in + n, out, Less<T>{}); })});
    made.contenders.push_back({kStdPar, Threads::kAnyNumber, returning_0([=] {
                                 std::adjacent_difference(std::execution::par_unseq, in, in + n, out, Less<T>{});
                               })});
    made.contenders.push_back({kTbb, Threads::kAnyNumber, returning_0([=] { DifferenceByTbb(in, out, n); })});
  }
  suite.Add(made);
}

template <class T>
void AddLoopsDifference(Suite& suite) {
  if constexpr (kHasPeers<T>) AddDifferenceCase<T, Beside::kLoop>(suite);
}

}  // namespace

void AddEveryCompact(Suite& suite) {
#define PREFIXD_ADD(name, type)                    \
  AddEveryForm<type, Selector::kPredicate>(suite); \
  AddEveryForm<type, Selector::kByteMask>(suite);  \
  AddEveryForm<type, Selector::kBitMask>(suite);
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_ADD)
#undef PREFIXD_ADD
}

void AddEveryDifference(Suite& suite) {
#define PREFIXD_ADD(name, type) AddLoopsDifference<type>(suite);
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_ADD)
#undef PREFIXD_ADD
}

void AddCompactCases(Suite& suite) {
  AddSelectors<float>(suite);
  AddSelectors<uint8_t>(suite);
  AddSelectors<int16_t>(suite);
  AddSelectors<int64_t>(suite);
  AddCase<float, Selector::kPredicate, false, true>(suite);
  AddCase<float, Selector::kByteMask, false, true>(suite);
  AddCase<float, Selector::kPredicate, true>(suite);
  AddCase<float, Selector::kByteMask, true>(suite);
  for (const Kept kept : {Kept::kOnePercent, Kept::kAllButOnePercent}) {
    AddCase<float, Selector::kPredicate>(suite, kept);
    AddCase<float, Selector::kByteMask>(suite, kept);
  }
}

void AddDifferenceCases(Suite& suite) {
  AddDifferenceCase<float>(suite);
  AddDifferenceCase<int32_t>(suite);
  AddDifferenceCase<uint8_t>(suite);
  AddDifferenceCase<int64_t>(suite);
}

}  // namespace prefixd::bench
