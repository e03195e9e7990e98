// Resident arrays with prefixd: the sum of the positive values, and their running total, from one upload.
// Start a server (`prefixd`), then: prefixd_resident [ADDRESS]
#include <iostream>
#include <vector>

#include <prefixd/client.h>

namespace {

using prefixd::Comparison;
using prefixd::client::NewArray;
using prefixd::client::Where;

absl::Status Run(const char* address) {
  prefixd::client::Client client(address);
  const std::vector<float> values = {3, -1, 2, -5, 4};

  // The values cross the wire here, and never again. The server deletes the array when `array` goes; where this program
  // is killed before, it expires.
  PREFIXD_ASSIGN_OR_RETURN(const auto array, client.CreateArray<float>(values, {.ttl = absl::Minutes(5)}));

  // How many are positive is not known before, so the server makes an array for them.
  PREFIXD_ASSIGN_OR_RETURN(const auto positive, client.CompactInto<float>(array, Where<float>{Comparison::kGreater, 0},
                                                                          {.values = NewArray{}}));
  std::cout << "positive: " << positive.count << '\n';  // 3

  // One number comes back, added up in f64.
  PREFIXD_ASSIGN_OR_RETURN(const auto sum, (client.Reduce<float, double>(positive.values)));
  std::cout << "sum: " << sum.value << '\n';  // 9

  // The positive values are of no more use: their totals take their place.
  PREFIXD_RETURN_IF_ERROR(client.ScanInto<float>(positive.values, positive.values).status());
  PREFIXD_ASSIGN_OR_RETURN(const auto totals, positive.values.Read<float>());
  std::cout << "totals:";
  for (const float total : totals) std::cout << ' ' << total;  // 3 5 9
  std::cout << '\n';
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "127.0.0.1:50051");
  if (!status.ok()) std::cerr << status.ToString() << '\n';
  return status.ok() ? 0 : 1;
}
