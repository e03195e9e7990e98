// What the commands print: one line on standard error, or one JSON object, or a table.
#ifndef PREFIXD_CLIENT_PREFIXCTL_REPORT_H_
#define PREFIXD_CLIENT_PREFIXCTL_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "kernels/types.h"

namespace prefixd::cli {

// Keys stay in the order in which they were set.
using Json = nlohmann::ordered_json;

// Numbers as JSON has them; NaN and the infinities, which it lacks, as "NaN", "Infinity" and "-Infinity".
Json ToJson(DType dtype, Value value);
// A stage that was not measured is left out.
Json ToJson(const client::Timing& timing, absl::Duration wall);
Json ToJson(const client::ServerInfo& info);
Json ToJson(const client::ArrayInfo& info);
Json AlgorithmsToJson(const client::ServerInfo& info);

// Example: "1000000 f32 in 12.3ms, kernel 410us (19.5 GB/s), cpu (2 threads, avx512), chained"
std::string SummaryLine(uint64_t num_items, DType dtype, const client::Timing& timing, absl::Duration wall);

// An aligned table, with a line end behind each row.
std::string Table(const client::ServerInfo& info);
std::string Table(const client::ArrayInfo& info, absl::Time now);
// Resident arrays, a row each, under a head.
std::string ArrayTable(const std::vector<client::ArrayInfo>& arrays, absl::Time now);
// The algorithms, a row each, with what each costs, and a head that explains.
std::string AlgorithmTable(const client::ServerInfo& info);

// To three digits, which stand in their places in a column: 0.41, 19.5, 2410.
std::string NumberText(double number);
// A cell of CSV, quoted where RFC 4180 asks for it.
std::string CsvCell(const Json& value);

// Errors: the file system's: a full disk, a closed pipe.
absl::Status PrintText(std::string_view text);
absl::Status PrintJson(const Json& json);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_REPORT_H_
