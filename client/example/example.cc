// A first program with prefixd. Start a server (`prefixd`), then: prefixd_example [ADDRESS]
#include <iostream>
#include <vector>

#include <prefixd/client.h>

namespace {

using prefixd::Comparison;
using prefixd::Op;
using prefixd::ScanKind;

absl::Status Run(const char* address) {
  prefixd::client::Client client(address);
  const std::vector<float> values = {3, 1, 2, 4};

  // Where each of four strings begins if they are put one after another.
  PREFIXD_ASSIGN_OR_RETURN(auto offsets, client.Scan<float>(values, {.kind = ScanKind::kExclusive}));
  std::cout << "offsets:";
  for (float offset : offsets.values) std::cout << ' ' << offset;  // 0 3 4 6

  PREFIXD_ASSIGN_OR_RETURN(auto longest, client.Reduce<float>(values, {.op = Op::kMax}));
  std::cout << "\nlongest: " << longest.value << " at " << longest.index.value_or(0);  // 4 at 3

  // A deadline is a good habit: nothing waits for ever.
  PREFIXD_ASSIGN_OR_RETURN(auto kept, client.Compact<float>(values, {Comparison::kGreater, 1.5f},
                                                            {.return_indices = true}, {.timeout = absl::Seconds(5)}));
  std::cout << "\nlonger than 1.5:";
  for (size_t i = 0; i < kept.values.size(); ++i) {
    std::cout << ' ' << kept.values[i] << " at " << kept.indices[i];  // 3 at 0, 2 at 2, 4 at 3
  }
  std::cout << "\ncomputed by: " << kept.timing.device << '\n';
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "127.0.0.1:50051");
  if (!status.ok()) std::cerr << status.ToString() << '\n';
  return status.ok() ? 0 : 1;
}
