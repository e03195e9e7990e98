// libFuzzer target: whatever the bytes, and however they are cut into slices, our parser and protobuf's agree.
//   cmake --preset fuzz && cmake --build --preset fuzz
//   build/fuzz/bin/array_message_fuzz -runs=10000000 -max_len=512 FOLDER tests/fuzz/corpus/array_message
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "google/protobuf/stubs/logging.h"
#include "tests/proto/differential.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silencer;  // It complains of strings that are not UTF-8.
  const std::string mismatch = prefixd::FuzzedMismatch({reinterpret_cast<const char*>(data), size});
  if (!mismatch.empty()) {
    std::fputs(mismatch.c_str(), stderr);
    std::abort();
  }
  return 0;
}
