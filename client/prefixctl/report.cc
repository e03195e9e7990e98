#include "client/prefixctl/report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/number.h"

namespace prefixd::cli {
namespace {

// Three significant digits are enough for a person, and exponents are too much: 0.41, 2.4, 19.5, 2410.
std::string Short(double number) {
  std::string text = absl::StrFormat("%.*f", number < 9.995 ? 2 : number < 99.95 ? 1 : 0, number);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// The unit is that of the rounded number: 1ms, not 1000us.
std::string Short(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds * 1e6 < 999.5) return Short(seconds * 1e6) + "us";
  if (seconds * 1e3 < 999.5) return Short(seconds * 1e3) + "ms";
  return Short(seconds) + "s";
}

std::string ShortBytes(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / 1048576;
  if (mib >= 1023.95) return absl::StrFormat("%.1f GiB", mib / 1024);
  if (mib >= 1) return absl::StrFormat("%.1f MiB", mib);
  return StrCat(bytes, " bytes");
}

// The dtypes a primitive is served on, other output types with theirs, the strategies and the operators, each once, in
// the order they came.
struct Served {
  std::vector<std::string> dtypes, outputs, ops, strategies;
};

Served ServedBy(const client::ServerInfo& info, Primitive primitive) {
  const auto add = [](std::vector<std::string>& names, std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  Served served;
  for (const client::Capability& capability : info.capabilities) {
    if (capability.primitive != primitive) continue;
    add(served.dtypes, Name(capability.dtype));
    if (capability.out_dtype != capability.dtype) {
      add(served.outputs, StrCat(Name(capability.dtype), ">", Name(capability.out_dtype)));
    }
    if (capability.op) add(served.ops, Name(*capability.op));
    add(served.strategies, Name(capability.algorithm.strategy));
  }
  return served;
}

std::string Join(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += StrCat(joined.empty() ? "" : " ", name);
  return joined;
}

// Rows of as many cells each, their columns aligned.
std::string Aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const auto& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) table.append(row[i]).append(widths[i] + 2 - row[i].size(), ' ');
    table.append(row.back()).append("\n");
  }
  return table;
}

// Example: 30x20
std::string ShapeText(const client::ArrayInfo& info) {
  std::string text;
  for (const uint64_t along : info.shape) text += StrCat(text.empty() ? "" : "x", along);
  return text;
}

// Example: in 9m30s
std::string ExpiryText(const client::ArrayInfo& info, absl::Time now) {
  const absl::Duration left = absl::Ceil(info.expire_time - now, absl::Seconds(1));
  return left > absl::ZeroDuration() ? StrCat("in ", absl::FormatDuration(left)) : "now";
}

}  // namespace

Json ToJson(DType dtype, Value value) {
  return VisitDType(dtype, [&](auto tag) -> Json {
    using T = typename decltype(tag)::type;
    const T number = value.As<T>();
    if constexpr (kIsFloating<T>) {
      if (std::isnan(number)) return "NaN";
      if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
      // Through the shortest text, so that an f32 prints as 0.1, not as 0.10000000149011612.
      const std::string text = FormatNumber(dtype, value);
      double shortest = 0;
      std::from_chars(text.data(), text.data() + text.size(), shortest);
      return shortest;
    } else {
      return number;
    }
  });
}

Json ToJson(const client::Timing& timing, absl::Duration wall) {
  Json json;
  json["wall_ns"] = absl::ToInt64Nanoseconds(wall);
  const auto set = [&](const char* name, const auto& stage) {
    if (stage) json[name] = *stage;
  };
  set("queue_ns", timing.queue_ns);
  set("host_copy_ns", timing.host_copy_ns);
  set("host_to_device_ns", timing.host_to_device_ns);
  set("kernel_ns", timing.kernel_ns);
  set("device_to_host_ns", timing.device_to_host_ns);
  set("server_total_ns", timing.server_total_ns);
  json["device"] = timing.device;
  json["algorithm"] = Name(timing.algorithm);
  json["launches"] = timing.launches;
  json["num_items"] = timing.num_items;
  json["num_bytes"] = timing.num_bytes;
  set("kernel_gb_per_s", timing.kernel_gb_per_s);
  json["batch_size"] = timing.batch_size;
  json["numerics_version"] = timing.numerics_version;
  return json;
}

Json ToJson(const client::ServerInfo& info) {
  const auto budget = [](const client::Budget& b) { return Json{{"limit", b.limit}, {"used", b.used}}; };
  Json json;
  json["version"] = info.version;
  json["numerics_version"] = info.numerics_version;
  json["device"] = info.device;
  json["device_memory_bytes"] = info.device_memory_bytes;
  json["device_memory_free_bytes"] = info.device_memory_free_bytes;
  json["lanes"] = info.lanes;
  json["max_message_bytes"] = info.max_message_bytes;
  json["max_reply_payload_bytes"] = info.max_reply_payload_bytes;
  json["requests"] = budget(info.requests);
  json["request_bytes"] = budget(info.request_bytes);
  json["staging_bytes"] = budget(info.staging_bytes);
  json["arrays"] = budget(info.arrays);
  json["array_bytes"] = budget(info.array_bytes);
  json["uptime_seconds"] = info.uptime_seconds;
  json["capabilities"] = Json::array();
  for (const client::Capability& capability : info.capabilities) {
    Json one;
    one["primitive"] = Name(capability.primitive);
    one["type"] = Name(capability.dtype);
    one["out_type"] = Name(capability.out_dtype);
    if (capability.op) one["op"] = Name(*capability.op);
    one["algorithm"] = Name(capability.algorithm);
    one["wide"] = capability.has_wide;
    json["capabilities"].push_back(std::move(one));
  }
  return json;
}

Json ToJson(const client::ArrayInfo& info) {
  Json json;
  json["name"] = info.name;
  json["type"] = Name(info.dtype);
  json["shape"] = info.shape;
  json["num_items"] = info.num_items;
  json["num_bytes"] = info.num_bytes;
  json["create_time"] = absl::FormatTime(absl::RFC3339_full, info.create_time, absl::UTCTimeZone());
  json["expire_time"] = absl::FormatTime(absl::RFC3339_full, info.expire_time, absl::UTCTimeZone());
  json["ttl_seconds"] = absl::ToDoubleSeconds(info.ttl);
  json["renew_on_use"] = info.renew_on_use;
  return json;
}

Json AlgorithmsToJson(const client::ServerInfo& info) {
  Json json;
  json["device"] = info.device;
  json["algorithms"] = Json::array();
  for (const client::AlgorithmInfo& row : info.algorithms) {
    Json one;
    one["primitive"] = Name(row.primitive);
    one["algorithm"] = Name(row.algorithm);
    one["has_items_per_thread"] = row.has_items_per_thread;
    one["has_padding"] = row.has_padding;
    one["work"] = row.work;
    one["depth"] = row.depth;
    one["traffic"] = row.traffic;
    one["launches"] = row.launches;
    one["stable"] = row.stable;
    one["deterministic"] = row.deterministic;
    if (row.max_items != 0) one["max_items"] = row.max_items;
    one["source"] = row.source;
    json["algorithms"].push_back(std::move(one));
  }
  return json;
}

std::string SummaryLine(uint64_t num_items, DType dtype, const client::Timing& timing, absl::Duration wall) {
  std::string line = StrCat(num_items, " ", Name(dtype), " in ", Short(wall));
  if (timing.kernel_ns) line += StrCat(", kernel ", Short(absl::Nanoseconds(*timing.kernel_ns)));
  if (timing.kernel_gb_per_s) line += StrCat(" (", Short(*timing.kernel_gb_per_s), " GB/s)");
  if (!timing.device.empty()) line += StrCat(", ", timing.device);
  if (timing.algorithm != Algorithm{}) line += StrCat(", ", Name(timing.algorithm));
  return line;
}

std::string Table(const client::ServerInfo& info) {
  const auto budget = [](const client::Budget& b, auto show) { return StrCat(show(b.used), " of ", show(b.limit)); };
  const auto count = [](uint64_t n) { return StrCat(n); };
  std::vector<std::vector<std::string>> rows = {
      {"version", info.version},
      {"numerics version", StrCat(info.numerics_version)},
      {"device", info.device},
      {"memory", StrCat(ShortBytes(info.device_memory_free_bytes), " free of ", ShortBytes(info.device_memory_bytes))},
      {"lanes", StrCat(info.lanes)},
      {"largest message", ShortBytes(info.max_message_bytes)},
      {"largest reply", ShortBytes(info.max_reply_payload_bytes)},
      {"requests", budget(info.requests, count)},
      {"request bytes", budget(info.request_bytes, ShortBytes)},
      {"staging", budget(info.staging_bytes, ShortBytes)},
      {"arrays", budget(info.arrays, count)},
      {"array bytes", budget(info.array_bytes, ShortBytes)},
      {"up for", absl::FormatDuration(absl::Seconds(info.uptime_seconds))},
  };
  for (int i = 0; i < kNumPrimitives; ++i) {
    const auto primitive = static_cast<Primitive>(i);
    const Served served = ServedBy(info, primitive);
    if (served.dtypes.empty()) continue;
    const std::string name(Name(primitive));
    rows.push_back({name + " types", Join(served.dtypes)});
    if (!served.outputs.empty()) rows.push_back({name + " output types", "the same, or " + Join(served.outputs)});
    if (!served.ops.empty()) rows.push_back({name + " operators", Join(served.ops)});
    rows.push_back({name + " algorithms", Join(served.strategies)});
  }
  return Aligned(rows);
}

std::string Table(const client::ArrayInfo& info, absl::Time now) {
  return Aligned({{"name", info.name},
                  {"type", std::string(Name(info.dtype))},
                  {"shape", ShapeText(info)},
                  {"size", ShortBytes(info.num_bytes)},
                  {"expires", ExpiryText(info, now)},
                  {"lives for", absl::FormatDuration(info.ttl) + (info.renew_on_use ? " from its last use on" : "")}});
}

std::string ArrayTable(const std::vector<client::ArrayInfo>& arrays, absl::Time now) {
  std::vector<std::vector<std::string>> rows = {{"name", "type", "shape", "size", "expires"}};
  for (const client::ArrayInfo& info : arrays) {
    rows.push_back(
        {info.name, std::string(Name(info.dtype)), ShapeText(info), ShortBytes(info.num_bytes), ExpiryText(info, now)});
  }
  return Aligned(rows);
}

std::string AlgorithmTable(const client::ServerInfo& info) {
  std::vector<std::array<std::string, 10>> rows = {
      {"primitive", "algorithm", "work", "depth", "traffic", "launches", "stable", "deterministic", "limit", "source"}};
  for (const client::AlgorithmInfo& row : info.algorithms) {
    rows.push_back(
        {std::string(Name(row.primitive)),
         StrCat(Name(row.algorithm), row.has_items_per_thread ? "[/N]" : "", row.has_padding ? "[/padded]" : ""),
         row.work, row.depth, row.traffic, row.launches, row.stable ? "yes" : "no", row.deterministic ? "yes" : "no",
         row.max_items == 0 ? "-" : StrCat(row.max_items), row.source});
  }
  std::array<size_t, 10> widths = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table = "n: elements. b: those of a tile. /N, /padded: what may follow the name.\n\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r > 1 && rows[r][0] != rows[r - 1][0]) table += '\n';
    for (size_t i = 0; i + 1 < rows[r].size(); ++i) {
      table.append(rows[r][i]).append(widths[i] + 2 - rows[r][i].size(), ' ');
    }
    table.append(rows[r].back()).append("\n");
  }
  return table;
}

std::string NumberText(double number) {
  return absl::StrFormat("%.*f", number < 9.995 ? 2 : number < 99.95 ? 1 : 0, number);
}

std::string CsvCell(const Json& value) {
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

absl::Status PrintText(std::string_view text) {
  PREFIXD_ASSIGN_OR_RETURN(auto file, OutputFile::Open("-"));
  PREFIXD_RETURN_IF_ERROR(file->Write(text));
  return file->Close();
}

absl::Status PrintJson(const Json& json) {
  // A device may have any name: bytes that are no UTF-8 are replaced.
  return PrintText(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace prefixd::cli
