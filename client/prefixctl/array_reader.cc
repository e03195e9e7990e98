#include "client/prefixctl/array_reader.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/npy.h"
#include "client/prefixctl/number.h"
#include "client/prefixctl/raw_reader.h"
#include "client/prefixctl/text_reader.h"

namespace prefixd::cli {
namespace {

absl::Status In(const InputFile& file, const absl::Status& status) {
  return absl::Status(status.code(), AbslView(StrCat(file.name(), ": ", std::string(status.message()))));
}

// Exactly `count` bytes more.
absl::Status Extend(InputFile& file, size_t count, std::string* bytes) {
  const size_t before = bytes->size();
  bytes->resize(before + count);
  PREFIXD_ASSIGN_OR_RETURN(const size_t got, file.Read(reinterpret_cast<std::byte*>(bytes->data() + before), count));
  bytes->resize(before + got);
  if (got < count) return In(file, absl::InvalidArgumentError("truncated: it ends in its header"));
  return absl::OkStatus();
}

// Reads up to the first element.
absl::StatusOr<NpyHeader> ReadNpyHeader(InputFile& file, Shapes shapes = Shapes::kLine) {
  std::string bytes;
  // Version 1.0 has a shorter preamble; what is read too much of it belongs to the dictionary.
  absl::Status status = Extend(file, kNpyMaxPreambleBytes, &bytes);
  // What is there of a file that ends too soon says more than that it does.
  if (!status.ok() && !absl::IsInvalidArgument(status)) return status;
  auto preamble = ParseNpyPreamble(bytes);
  if (!preamble.ok()) return In(file, preamble.status());
  PREFIXD_RETURN_IF_ERROR(status);
  const size_t header_bytes = preamble->preamble_bytes + preamble->dictionary_bytes;
  if (header_bytes < bytes.size()) return In(file, absl::InvalidArgumentError("not a valid .npy header: too short"));
  PREFIXD_RETURN_IF_ERROR(Extend(file, header_bytes - bytes.size(), &bytes));
  auto header = ParseNpyDictionary(std::string_view(bytes).substr(preamble->preamble_bytes));
  if (!header.ok()) return In(file, header.status());
  if (header->fortran_order) {
    return In(file, absl::InvalidArgumentError("it is in Fortran order: save numpy.ascontiguousarray(x) instead"));
  }
  const size_t num_dimensions = header->shape.size();
  if (num_dimensions != 1 && (shapes == Shapes::kLine || num_dimensions != 2)) {
    return In(file, absl::InvalidArgumentError(StrCat("it has ", num_dimensions, " dimensions, expected one",
                                                      shapes == Shapes::kMatrixToo ? " or two" : "",
                                                      ": save x.ravel() instead")));
  }
  if (num_dimensions == 2 &&
      header->shape[0] > std::numeric_limits<uint64_t>::max() / std::max<uint64_t>(header->shape[1], 1)) {
    return In(file, absl::InvalidArgumentError("not a valid .npy header: it claims more than 2^64 elements"));
  }
  return header;
}

absl::StatusOr<Value> ParseMaskWord(DType, std::string_view word) {
  if (word == "0" || word == "1") return Value::Of(static_cast<uint8_t>(word == "1"));
  return absl::InvalidArgumentError(StrCat("'", Shown(word), "' is neither 0 nor 1"));
}

}  // namespace

std::optional<Format> FormatOfSuffix(std::string_view path) {
  if (path.ends_with(".npy")) return Format::kNpy;
  if (path.ends_with(".txt") || path.ends_with(".csv")) return Format::kText;
  return std::nullopt;
}

Format FormatOf(std::string_view path) {
  return FormatOfSuffix(path).value_or(path == "-" ? Format::kText : Format::kRaw);
}

absl::StatusOr<std::unique_ptr<ArrayReader>> OpenArray(std::unique_ptr<InputFile> file, Format format,
                                                       std::optional<DType> dtype, Shapes shapes) {
  std::optional<uint64_t> num_items, row_items;
  if (format == Format::kNpy) {
    PREFIXD_ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(*file, shapes));
    const absl::StatusOr<DType> own = NpyDType(header.descr);
    if (!own.ok()) return In(*file, own.status());
    if (dtype && *dtype != *own) {
      return In(*file, absl::InvalidArgumentError(StrCat("it holds ", Name(*own), ", not ", Name(*dtype))));
    }
    dtype = *own;
    num_items = header.shape[0];
    if (header.shape.size() == 2) {
      row_items = header.shape[1];
      *num_items *= *row_items;
    }
  } else if (!dtype && format == Format::kText) {
    dtype = DType::kF64;
  } else if (!dtype) {
    return In(*file, absl::InvalidArgumentError("raw bytes need --type"));
  }
  if (format == Format::kText) return std::make_unique<TextReader>(std::move(file), *dtype, &ParseNumber);
  return RawReader::Create(std::move(file), *dtype, num_items, row_items);
}

absl::StatusOr<std::unique_ptr<ArrayReader>> OpenMask(std::unique_ptr<InputFile> file, Format format) {
  if (format == Format::kText) return std::make_unique<TextReader>(std::move(file), DType::kU8, &ParseMaskWord);
  std::optional<uint64_t> num_items;
  if (format == Format::kNpy) {
    PREFIXD_ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(*file));
    if (header.descr != "|b1" && header.descr != "|u1") {
      return In(*file, absl::InvalidArgumentError(
                           StrCat("a mask is of type '|b1' or '|u1', not '", Shown(header.descr), "'")));
    }
    num_items = header.shape[0];
  }
  return RawReader::Create(std::move(file), DType::kU8, num_items);
}

}  // namespace prefixd::cli
