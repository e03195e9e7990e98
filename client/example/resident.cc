// Resident arrays with prefixd: the sum of the positive values, and their running total, from one upload; by a call for
// each operation, and by one call for all of them.
// Start a server (`prefixd`), then: prefixd_resident [ADDRESS]
#include <iostream>
#include <vector>

#include <prefixd/client.h>

namespace {

using prefixd::Comparison;
using prefixd::client::Array;
using prefixd::client::Client;
using prefixd::client::NewArray;
using prefixd::client::Program;
using prefixd::client::Where;

absl::Status Print(const Array& totals) {
  PREFIXD_ASSIGN_OR_RETURN(const auto values, totals.Read<float>());
  std::cout << "totals:";
  for (const float value : values) std::cout << ' ' << value;  // 3 5 9
  std::cout << '\n';
  return absl::OkStatus();
}

absl::Status RunCalls(Client& client, const Array& array) {
  // How many are positive is not known before, so the server makes an array for them.
  PREFIXD_ASSIGN_OR_RETURN(const auto positive, client.CompactInto<float>(array, Where<float>{Comparison::kGreater, 0},
                                                                          {.values = NewArray{}}));
  std::cout << "positive: " << positive.count << '\n';  // 3

  // One number comes back, added up in f64.
  PREFIXD_ASSIGN_OR_RETURN(const auto sum, (client.Reduce<float, double>(positive.values)));
  std::cout << "sum: " << sum.value << '\n';  // 9

  // The positive values are of no more use: their totals take their place.
  PREFIXD_RETURN_IF_ERROR(client.ScanInto<float>(positive.values, positive.values).status());
  return Print(positive.values);
}

// The positive values never get an array of their own that anybody sees.
absl::Status RunProgram(Client& client, const Array& array) {
  Program program;
  const auto positive = program.Compact(program.Input<float>(array), {Comparison::kGreater, 0});
  const auto sum = program.Reduce<float, double>(positive.values);
  const auto totals = program.Scan(positive.values);
  program.Output(positive.count);
  program.Output(sum.value);
  program.Output(totals, NewArray{});

  PREFIXD_ASSIGN_OR_RETURN(auto result, client.Run(program));
  PREFIXD_ASSIGN_OR_RETURN(const uint64_t count, result.Value(positive.count));
  PREFIXD_ASSIGN_OR_RETURN(const double sum_of_all, result.Value(sum.value));
  std::cout << "positive: " << count << "\nsum: " << sum_of_all << '\n';  // 3, 9
  PREFIXD_ASSIGN_OR_RETURN(const Array array_of_totals, result.TakeArray(totals));
  return Print(array_of_totals);
}

absl::Status Run(const char* address) {
  Client client(address);
  const std::vector<float> values = {3, -1, 2, -5, 4};

  // The values cross the wire here, and never again. The server deletes the array when `array` goes; where this program
  // is killed before, it expires.
  PREFIXD_ASSIGN_OR_RETURN(const auto array, client.CreateArray<float>(values, {.ttl = absl::Minutes(5)}));
  PREFIXD_RETURN_IF_ERROR(RunCalls(client, array));
  return RunProgram(client, array);
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "127.0.0.1:50051");
  if (!status.ok()) std::cerr << status.ToString() << '\n';
  return status.ok() ? 0 : 1;
}
