#pragma once
// What a variation says of its result: `metrics.json` in its own folder, a record of names and
// numbers or words.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv::matrix {

inline constexpr std::string_view kMetricsFile = "metrics.json";

/// One of the two is there.
struct Metric {
  std::string name;
  std::optional<double> number;
  std::optional<std::string> text;  ///< also `NaN` and `Infinity`, which JSON has no numbers for
  friend bool operator==(const Metric&, const Metric&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("number", self.number);
    visit("text", self.text);
  }
};

/// In the file's order; Python's `NaN` and `Infinity` are understood. What is neither number nor
/// word nor true or false (lists, records) is left out. Throws `bad-json` for what is no record.
std::vector<Metric> parse_metrics(std::string_view text, std::string_view shown);
/// Of a variation's folder; none where it has no such file. Throws as above, and `io` and its kin.
std::vector<Metric> read_metrics(const fs::path& folder);
/// The same of the folder `name` in the open folder `results`, which messages call `shown`: no link
/// is followed, whatever other variations put in its place meanwhile.
std::vector<Metric> read_metrics(int results, const std::string& name, const fs::path& shown);

/// `0.9712`, `1e-05`, `12`: short enough for a column.
std::string metric_text(const Metric& metric);

}  // namespace mlenv::matrix
