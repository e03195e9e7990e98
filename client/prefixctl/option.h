// Options of prefixctl whose values CLI11 can't check by itself: names, lists, texts with a parser, numbers. What is
// not one of them is a usage error that says what was expected.
#ifndef PREFIXD_CLIENT_PREFIXCTL_OPTION_H_
#define PREFIXD_CLIENT_PREFIXCTL_OPTION_H_

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "client/prefixctl/number.h"
#include "kernels/algorithm.h"
#include "kernels/types.h"

namespace prefixd::cli {

// The names of the enumerators for which `offered` holds.
template <class Enum, class Offered>
std::string NamesOf(Offered offered) {
  std::string names;
  for (size_t i = 0; i < kNamesOf<Enum>.size(); ++i) {
    const auto value = static_cast<Enum>(i);
    if (offered(value)) names += StrCat(names.empty() ? "" : ", ", Name(value));
  }
  return names;
}

// The element types that are served, and the operators that the command line offers, for AddNamed.
std::string DTypeNames();
std::string OpNames(Primitive primitive);

// The algorithm of that name. Throws CLI::ValidationError, about the flag, if there is none.
Algorithm ParseAlgorithm(const std::string& flag, std::string_view name);

// Whether a name is one of `names`, a list separated by ", "; what it names in *out.
template <class Enum>
bool IsOneOf(const std::string& name, const std::string& names, Enum* out) {
  return FromName(name, out) && (", " + names + ", ").find(", " + name + ", ") != std::string::npos;
}

// An option that takes one of `names`.
template <class Enum, class Out>
CLI::Option* AddNamed(CLI::App* app, const std::string& flag, const std::string& names, const std::string& what,
                      Out* out) {
  const auto set = [flag, names, out](const std::string& name) {
    Enum value;
    if (!IsOneOf(name, names, &value)) {
      throw CLI::ValidationError(flag, "'" + name + "' is none of " + names);
    }
    *out = value;
  };
  return app->add_option_function<std::string>(flag, set, what + ": " + names)->type_name("NAME");
}

enum class HasAll { kNo, kYes };

// An option that takes several of them, separated by commas. `all`, where there is that, leaves *out empty.
template <class Enum>
CLI::Option* AddNamedList(CLI::App* app, const std::string& flag, const std::string& names, const std::string& what,
                          HasAll has_all, std::vector<Enum>* out) {
  const auto set = [flag, names, has_all, out](const std::string& list) {
    out->clear();
    for (const absl::string_view name : absl::StrSplit(list, ',')) {
      if (has_all == HasAll::kYes && name == "all") {
        out->clear();
        return;
      }
      Enum value;
      if (!IsOneOf(std::string(name), names, &value)) {
        throw CLI::ValidationError(
            flag, "'" + std::string(name) + "' is none of " + names + (has_all == HasAll::kYes ? ", all" : ""));
      }
      out->push_back(value);
    }
  };
  return app
      ->add_option_function<std::string>(flag, set, what + ": " + names + (has_all == HasAll::kYes ? ", or all" : ""))
      ->type_name("NAMES");
}

// An empty argument is a script's variable that was never set.
inline const CLI::Validator kNotEmpty([](std::string& text) { return std::string(text.empty() ? "it is empty" : ""); },
                                      "");

// An option whose text `parse` turns into *out.
template <class Parse, class Out>
CLI::Option* AddParsed(CLI::App* app, const std::string& flag, Parse parse, const std::string& what, Out* out) {
  const auto set = [flag, parse, out](const std::string& text) {
    auto parsed = parse(text);
    if (!parsed.ok()) throw CLI::ValidationError(flag, std::string(parsed.status().message()));
    *out = *std::move(parsed);
  };
  return app->add_option_function<std::string>(flag, set, what);
}

// An option that takes a number of a range. CLI::Range lets NaN pass, and CLI11 makes a large number of --seed -1.
template <class Number, class Out>
CLI::Option* AddNumber(CLI::App* app, const std::string& flag, Number least, Number most, const std::string& what,
                       Out* out) {
  const auto set = [flag, least, most, out](const std::string& text) {
    const char* const end = text.data() + text.size();
    Number number{};
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || !(number >= least && number <= most)) {
      throw CLI::ValidationError(flag, StrCat("'", Shown(text), "' is no number from ", least, " to ", most));
    }
    *out = number;
  };
  return app->add_option_function<std::string>(flag, set, what);
}

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_OPTION_H_
