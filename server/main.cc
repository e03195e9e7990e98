// prefixd: reads the flags and serves.
#include <variant>

#include "base/process.h"
#include "server/options.h"
#include "server/serve.h"

int main(int argc, char** argv) {
  prefixd::TuneProcess();
  const std::variant<prefixd::Options, int> parsed = prefixd::ParseOptions(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  const auto& options = std::get<prefixd::Options>(parsed);
  prefixd::Serve(options, [&] { return prefixd::OpenDevice(options.device, options.cpu_isa); });
}
