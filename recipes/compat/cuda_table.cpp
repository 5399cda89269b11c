#include "recipes/compat/cuda_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>

#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

constexpr int kCudaDataFormat = 1;
constexpr const char* kCudaDataErrorCode = "cuda-data-invalid";

/// Dotted numbers: so many, of at most so many digits each.
bool are_numbers(std::string_view text, std::size_t least, std::size_t most, std::size_t digits) {
  const auto parts = split(text, '.');
  return parts.size() >= least && parts.size() <= most &&
         std::all_of(parts.begin(), parts.end(), [&](std::string_view part) {
           return !part.empty() && part.size() <= digits &&
                  std::all_of(part.begin(), part.end(), is_digit);
         });
}

std::optional<unsigned> number_of(std::string_view digits) {
  unsigned value = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

bool is_month(std::string_view text) {
  return text.size() == 7 && is_date(std::string(text) + "-01");
}

class TableReader {
 public:
  explicit TableReader(TomlReader reader) : reader_(std::move(reader)) {}

  CudaTable read() {
    const TomlValue root = parse_toml(reader_.file());
    constexpr std::array<std::string_view, 7> kKeys = {
        "format", "date", "sources", "releases", "floors", "architectures", "builds"};
    reader_.only(root, kKeys);
    if (reader_.member(root, "format", TomlKind::integer).integer != kCudaDataFormat) {
      reader_.fail(root, fmt::format("this mlenv reads format {}", kCudaDataFormat));
    }
    table_.date = checked(root, "date", is_date, "a date: YYYY-MM-DD");
    const TomlValue& sources = reader_.member(root, "sources", TomlKind::table);
    for (const auto& [name, value] : sources.members) {
      table_.sources.emplace(name, reader_.text(sources, name));
    }
    for (const TomlValue& row : reader_.member(root, "releases", TomlKind::list).items)
      release(row);
    for (const TomlValue& row : rows(root, "floors")) floor(row);
    for (const TomlValue& row : rows(root, "architectures")) architecture(row);
    for (const TomlValue& row : rows(root, "builds")) build(row);
    if (table_.releases.empty()) reader_.fail(root, "there are no releases");
    return std::move(table_);
  }

 private:
  std::vector<TomlValue> rows(const TomlValue& root, const std::string& name) const {
    const TomlValue* list = reader_.optional_member(root, name, TomlKind::list);
    return list == nullptr ? std::vector<TomlValue>{} : list->items;
  }

  std::string checked(const TomlValue& row, const std::string& key, bool (*fits)(std::string_view),
                      std::string_view what) const {
    const std::string& text = reader_.text(row, key);
    if (!fits(text)) {
      reader_.fail(*row.find(key), fmt::format("`{}` is {}; this is `{}`", key, what, text));
    }
    return text;
  }

  std::string driver(const TomlValue& row) const {
    return checked(row, "driver", is_driver_version, "a driver's version");
  }

  /// Its origin, once all keys of the row are known to be there.
  CudaRowOrigin origin(const TomlValue& row, std::vector<std::string_view> keys) const {
    if (row.kind != TomlKind::table) reader_.fail(row, "a row is a table");
    for (const char* key : {"source", "read", "standing", "conflict"}) keys.emplace_back(key);
    reader_.only(row, keys);
    CudaRowOrigin found;
    found.source = reader_.text(row, "source");
    if (!table_.sources.contains(found.source)) {
      reader_.fail(*row.find("source"), fmt::format("`{}` is none of `sources`", found.source));
    }
    found.read = checked(
        row, "read", [](std::string_view text) { return is_date(text) || is_month(text); },
        "a date: YYYY-MM-DD or YYYY-MM");
    if (found.read > table_.date) reader_.fail(*row.find("read"), "the row is newer than `date`");
    found.standing = reader_.optional_text(row, "standing");
    found.conflict = reader_.optional_text(row, "conflict");
    const bool conflicting = found.standing == "conflicting";
    if (!found.standing.empty() && found.standing != "secondary" && !conflicting) {
      reader_.fail(*row.find("standing"), "`standing` is `secondary` or `conflicting`");
    }
    if (conflicting == found.conflict.empty()) {
      reader_.fail(row, "`conflict` says what another source has, and goes with `conflicting`");
    }
    return found;
  }

  void release(const TomlValue& row) {
    CudaTable::Release made;
    made.origin = origin(row, {"release", "driver", "updates"});
    made.release = checked(row, "release", is_toolkit_release, "a toolkit's: `12.6`");
    made.driver = driver(row);
    made.updates = reader_.texts(row, "updates");
    std::string_view before = made.driver;
    for (const std::string& update : made.updates) {
      if (!is_driver_version(update)) {
        reader_.fail(*row.find("updates"), fmt::format("`{}` is no driver's version", update));
      }
      if (!is_older(before, update)) {
        reader_.fail(*row.find("updates"), "updates' drivers stand oldest first, after `driver`");
      }
      before = update;
    }
    if (!table_.releases.empty()) {
      const CudaTable::Release& newer = table_.releases.back();
      if (!is_older(made.release, newer.release)) reader_.fail(row, "releases stand newest first");
      if (!is_older(before, newer.driver)) {
        reader_.fail(row, fmt::format("CUDA {} came with {}, and its drivers are older than that",
                                      newer.release, newer.driver));
      }
    }
    table_.releases.push_back(std::move(made));
  }

  void floor(const TomlValue& row) {
    CudaTable::Floor made;
    made.origin = origin(row, {"major", "driver"});
    made.major = reader_.text(row, "major");
    made.driver = driver(row);
    if (!are_numbers(made.major, 1, 1, 3)) reader_.fail(row, "`major` is a number");
    if (!table_.floors.empty() && (!is_older(made.major, table_.floors.back().major) ||
                                   !is_older(made.driver, table_.floors.back().driver))) {
      reader_.fail(row, "floors stand newest first");
    }
    table_.floors.push_back(std::move(made));
  }

  std::string optional_release(const TomlValue& row, const std::string& key) const {
    return row.find(key) == nullptr ? ""
                                    : checked(row, key, is_toolkit_release, "a toolkit's: `12.6`");
  }

  void architecture(const TomlValue& row) {
    CudaTable::Architecture made;
    made.origin = origin(row, {"sm", "first", "last"});
    std::string digits = reader_.text(row, "sm");
    if (!are_numbers(digits, 2, 2, 2)) reader_.fail(row, "`sm` is an architecture's: `9.0`");
    digits.erase(digits.find('.'), 1);
    const auto code = parse_device_code("sm_" + digits);
    if (!code) reader_.fail(row, "`sm` is an architecture's: `9.0`");
    made.code = *code;
    made.first = optional_release(row, "first");
    made.last = optional_release(row, "last");
    if (!made.first.empty() && !made.last.empty() && is_older(made.last, made.first)) {
      reader_.fail(row, "`last` is older than `first`");
    }
    if (!table_.architectures.empty() && !(table_.architectures.back().code < made.code)) {
      reader_.fail(row, "architectures stand oldest first");
    }
    table_.architectures.push_back(std::move(made));
  }

  void build(const TomlValue& row) {
    CudaTable::Build made;
    made.origin = origin(row, {"package", "release", "cuda", "inside", "code", "versions"});
    made.package = reader_.text(row, "package");
    made.release = checked(row, "release", is_toolkit_release, "two numbers: `2.15`");
    made.cuda = optional_release(row, "cuda");
    made.inside = reader_.optional_flag(row, "inside", false);
    if (made.inside && made.cuda.empty()) reader_.fail(row, "`inside` goes with `cuda`");
    made.versions = reader_.texts(row, "versions");
    for (const std::string_view word : split(reader_.text(row, "code"), ' ')) {
      const auto code = parse_device_code(word);
      if (!code) reader_.fail(*row.find("code"), fmt::format("`{}` is no architecture", word));
      made.code.push_back(*code);
    }
    const bool read = !made.versions.empty() &&
                      std::all_of(made.versions.begin(), made.versions.end(), [&](const auto& one) {
                        return version_prefix(one, 2) == made.release;
                      });
    if (!read) reader_.fail(row, "`versions` are those of the release whose wheels were read");
    table_.builds.push_back(std::move(made));
  }

  TomlReader reader_;
  CudaTable table_;
};

std::string texts_as_toml(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  quoted.reserve(texts.size());
  for (const std::string& text : texts) quoted.push_back(toml_text(text));
  return '[' + join(quoted, ", ") + ']';
}

}  // namespace

bool is_driver_version(std::string_view text) {
  return are_numbers(text, 1, 3, 4) && split(text, '.').front().size() >= 3;
}

bool is_toolkit_release(std::string_view text) { return are_numbers(text, 2, 2, 3); }

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto year = number_of(text.substr(0, 4));
  const auto month = number_of(text.substr(5, 2));
  const auto day = number_of(text.substr(8, 2));
  return year && month && day && *year >= 2000 &&
         std::chrono::year_month_day{std::chrono::year{static_cast<int>(*year)},
                                     std::chrono::month{*month}, std::chrono::day{*day}}
             .ok();
}

CudaTable parse_cuda_table(std::string_view text, const fs::path& shown_path) {
  return TableReader(TomlReader({shown_path, std::string(text), kCudaDataErrorCode,
                                 "remove the file, or write it anew with `mlenv data update`"}))
      .read();
}

std::string render_cuda_releases(const CudaTable& table) {
  std::string out = "# Written by `mlenv data update`.\n";
  out += fmt::format("format = {}\ndate = {}\n\nreleases = [\n", kCudaDataFormat,
                     toml_text(table.date));
  for (const CudaTable::Release& one : table.releases) {
    out += fmt::format("  {{release = {}, driver = {}, updates = {}, source = {}, read = {}",
                       toml_text(one.release), toml_text(one.driver), texts_as_toml(one.updates),
                       toml_text(one.origin.source), toml_text(one.origin.read));
    if (!one.origin.standing.empty()) out += ", standing = " + toml_text(one.origin.standing);
    if (!one.origin.conflict.empty()) out += ", conflict = " + toml_text(one.origin.conflict);
    out += "},\n";
  }
  out += "]\n\n[sources]\n";
  for (const auto& [name, what] : table.sources) {
    out += fmt::format("{} = {}\n", toml_key(name), toml_text(what));
  }
  return out;
}

std::string fault_of_update(const CudaTable& built_in, const CudaTable& newer) {
  if (newer.date < built_in.date) {
    return fmt::format("it is of {}, and this mlenv's own of {}", newer.date, built_in.date);
  }
  for (const CudaTable::Release& one : built_in.releases) {
    const auto same =
        std::find_if(newer.releases.begin(), newer.releases.end(),
                     [&](const CudaTable::Release& other) { return other.release == one.release; });
    if (same == newer.releases.end()) return fmt::format("it lacks CUDA {}", one.release);
    if (same->driver != one.driver) {
      return fmt::format("it says that CUDA {} came with driver {}, and this mlenv knows {}",
                         one.release, same->driver, one.driver);
    }
  }
  // Between releases that are known there is nothing to be found out: 12.7 was never released.
  for (const CudaTable::Release& one : newer.releases) {
    if (is_older(built_in.releases.front().release, one.release)) continue;
    const bool known =
        std::any_of(built_in.releases.begin(), built_in.releases.end(),
                    [&](const CudaTable::Release& other) { return other.release == one.release; });
    if (!known) return fmt::format("it has a CUDA {}, which was never released", one.release);
  }
  return {};
}

}  // namespace mlenv
