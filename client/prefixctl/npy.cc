#include "client/prefixctl/npy.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/status.h"

namespace prefixd::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxDictionaryBytes = 65536;  // Arrays of plain types need about a hundred.
constexpr size_t kWrittenHeaderBytes = 128;    // NumPy wants a multiple of 64; the longest of ours has 112.

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(StrCat("not a valid .npy header: ", what));
}

// A cursor over the dictionary.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  bool Accept(char c) {
    SkipBlanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool AcceptWord(std::string_view word) {
    SkipBlanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool AcceptString(std::string* out) {
    SkipBlanks();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return false;
    *out = std::string(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool AcceptNumber(uint64_t* out) {
    SkipBlanks();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *out);
    if (error != std::errc()) return false;
    rest_.remove_prefix(end - rest_.data());
    return true;
  }
  bool AtEnd() {
    SkipBlanks();
    return rest_.empty();
  }

 private:
  void SkipBlanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  std::string_view rest_;
};

bool AcceptShape(Parser& parser, std::vector<uint64_t>* shape) {
  if (!parser.Accept('(')) return false;
  shape->clear();
  while (!parser.Accept(')')) {
    uint64_t length;
    if (!parser.AcceptNumber(&length)) return false;
    shape->push_back(length);
    if (parser.Accept(',')) continue;
    return parser.Accept(')');
  }
  return true;
}

}  // namespace

absl::StatusOr<NpyPreamble> ParseNpyPreamble(std::string_view bytes) {
  if (!bytes.starts_with(kMagic))
    return absl::InvalidArgumentError("not a .npy file: it does not start with \\x93NUMPY");
  if (bytes.size() < kNpyMinPreambleBytes) return Malformed("it ends early");
  const auto byte = [&](size_t i) -> size_t { return static_cast<unsigned char>(bytes[i]); };
  NpyPreamble preamble;
  if (byte(6) == 1) {
    preamble = {kNpyMinPreambleBytes, byte(8) | byte(9) << 8};
  } else if (byte(6) == 2 || byte(6) == 3) {
    if (bytes.size() < kNpyMaxPreambleBytes) return Malformed("it ends early");
    preamble = {kNpyMaxPreambleBytes, byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24};
  } else {
    return absl::InvalidArgumentError(
        StrCat(".npy version ", byte(6), ".", byte(7), " is not supported: expected 1.0, 2.0 or 3.0"));
  }
  if (preamble.dictionary_bytes > kMaxDictionaryBytes) {
    return Malformed(StrCat("it claims to be ", preamble.dictionary_bytes, " bytes long"));
  }
  return preamble;
}

absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text) {
  Parser parser(text);
  NpyHeader header;
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  if (!parser.Accept('{')) return Malformed("no dictionary");
  while (!parser.Accept('}')) {
    std::string key;
    if (!parser.AcceptString(&key) || !parser.Accept(':')) return Malformed("no key where one is due");
    if (key == "descr" && !has_descr) {
      has_descr = true;
      if (parser.Accept('[')) return absl::InvalidArgumentError("structured types are not supported");
      if (!parser.AcceptString(&header.descr)) return Malformed("descr is no string");
    } else if (key == "fortran_order" && !has_order) {
      has_order = true;
      header.fortran_order = parser.AcceptWord("True");
      if (!header.fortran_order && !parser.AcceptWord("False")) return Malformed("fortran_order is no truth value");
    } else if (key == "shape" && !has_shape) {
      has_shape = true;
      if (!AcceptShape(parser, &header.shape)) return Malformed("shape is no tuple of lengths");
    } else {
      return Malformed("a key that is unknown or comes twice");
    }
    if (parser.Accept(',')) continue;
    if (parser.Accept('}')) break;
    return Malformed("no comma where one is due");
  }
  if (!parser.AtEnd()) return Malformed("text behind the dictionary");
  if (!has_descr || !has_order || !has_shape) return Malformed("descr, fortran_order or shape is missing");
  return header;
}

absl::StatusOr<DType> NpyDType(std::string_view descr) {
  if (descr.starts_with('>')) {
    return absl::InvalidArgumentError(StrCat("type '", descr,
                                             "' is big-endian: convert it, for example with "
                                             "x.astype(x.dtype.newbyteorder('<'))"));
  }
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::kBF16) continue;  // NumPy has none.
    const char kind = IsFloating(dtype) ? 'f' : IsSigned(dtype) ? 'i' : 'u';
    if (descr == StrCat(SizeOf(dtype) == 1 ? "|" : "<", std::string(1, kind), SizeOf(dtype))) return dtype;
  }
  return absl::InvalidArgumentError(StrCat("type '", descr, "' is not supported"));
}

std::string FormatNpyHeader(DType dtype, uint64_t num_items, std::optional<uint64_t> row_items) {
  const std::string shape =
      row_items ? StrCat(num_items / std::max<uint64_t>(*row_items, 1), ", ", *row_items) : StrCat(num_items, ",");
  const char kind = IsFloating(dtype) ? 'f' : IsSigned(dtype) ? 'i' : 'u';
  std::string header = StrCat(kMagic, std::string_view("\x01\x00", 2));
  constexpr size_t kDictionaryBytes = kWrittenHeaderBytes - kNpyMinPreambleBytes;
  static_assert(kDictionaryBytes < 256);
  header += static_cast<char>(kDictionaryBytes);
  header += '\0';
  header += StrCat("{'descr': '", SizeOf(dtype) == 1 ? "|" : "<", std::string(1, kind), SizeOf(dtype),
                   "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize(kWrittenHeaderBytes - 1, ' ');
  return header + '\n';
}

}  // namespace prefixd::cli
