#include "runner/matrix/metrics.hpp"

#include <fcntl.h>
#include <array>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "base/beneath.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "recipes/text.hpp"

namespace mlenv::matrix {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostMetricsBytes = std::size_t{1} << 20U;
constexpr std::size_t kLongestText = 80;

/// Python's words for what is no number, outside of strings, as strings.
std::string without_bare_words(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  bool in_string = false;
  while (!text.empty()) {
    std::size_t taken = 1;
    if (in_string && text.front() == '\\') taken = std::min<std::size_t>(2, text.size());
    if (text.front() == '"') in_string = !in_string;
    std::string_view word;
    for (const std::string_view one : kWords) {
      if (!in_string && text.starts_with(one)) word = one;
    }
    if (!word.empty()) {
      out += fmt::format("\"{}\"", word);
      taken = word.size();
    } else {
      out += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::optional<Metric> metric(const std::string& name, const ordered_json& value) {
  if (name.empty() || name.size() > kLongestText) return std::nullopt;
  if (value.is_number()) return Metric{name, value.get<double>(), std::nullopt};
  if (value.is_boolean()) return Metric{name, std::nullopt, value.get<bool>() ? "true" : "false"};
  if (!value.is_string()) return std::nullopt;
  std::string text = value.get<std::string>();
  if (text.size() > kLongestText) return std::nullopt;
  return Metric{name, std::nullopt, std::move(text)};
}

Error unreadable(std::string_view shown, std::string_view why) {
  return failure("bad-json", "`{}` holds no metrics", shown)
      .because(std::string(why))
      .hint("write a record of names and numbers: `json.dump({\"loss\": loss}, file)`");
}

}  // namespace

std::vector<Metric> parse_metrics(std::string_view text, std::string_view shown) {
  const ordered_json root = ordered_json::parse(without_bare_words(text), nullptr, false);
  if (root.is_discarded()) throw unreadable(shown, "it is not JSON");
  if (!root.is_object()) throw unreadable(shown, "it is not a record");
  std::vector<Metric> metrics;
  for (const auto& [name, value] : root.items()) {
    if (auto one = metric(name, value)) metrics.push_back(*std::move(one));
  }
  return metrics;
}

std::vector<Metric> read_metrics(const fs::path& folder) {
  const Fd at{::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!at && errno == ENOENT) return {};
  if (!at) throw os_error(errno, "cannot open the folder `{}`", folder.string());
  return read_metrics(at.get(), ".", folder);
}

std::vector<Metric> read_metrics(int results, const std::string& name, const fs::path& shown) {
  const std::string path = (shown / kMetricsFile).string();
  // Of what a program in a container made, links least of all lead elsewhere.
  const Fd fd = open_beneath(results, fmt::format("{}/{}", name, kMetricsFile),
                             O_RDONLY | O_NONBLOCK, Links::none);
  if (!fd && errno == ENOENT) return {};
  if (!fd) throw os_error(errno, "cannot open `{}`", path);
  FdSource source{fd.get()};
  return parse_metrics(read_all(source, kMostMetricsBytes), path);
}

std::string metric_text(const Metric& metric) {
  if (metric.number) return fmt::format("{:.6g}", *metric.number);
  return printable(metric.text.value_or(""));
}

}  // namespace mlenv::matrix
