#include "cli/diff_text.hpp"

#include <algorithm>
#include <array>

#include "base/printable.hpp"
#include "cli/lines.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

using What = PackageChange::What;
using Where = LayerPresence::Where;

/// What decides whether a training runs, and how: shown first.
constexpr std::array<std::string_view, 10> kFirstValues = {
    "platform", "base",          "framework", "python", "requested cuda",
    "cuda",     "oldest driver", "cudnn",     "nccl",   "gpu code"};
constexpr std::array<std::string_view, 6> kFirstPackages = {"torch", "tensorflow", "tensorflow-cpu",
                                                            "jax",   "jaxlib",     "cuda-toolkit"};
constexpr std::array<std::string_view, 3> kFirstPrefixes = {"nvidia-cuda-runtime", "nvidia-cudnn",
                                                            "nvidia-nccl"};

bool is_first(const ValueChange& change) {
  return std::find(kFirstValues.begin(), kFirstValues.end(), change.name) != kFirstValues.end();
}

bool is_first(const PackageChange& change) {
  const std::string& name = change.either().name;
  return std::find(kFirstPackages.begin(), kFirstPackages.end(), name) != kFirstPackages.end() ||
         std::any_of(kFirstPrefixes.begin(), kFirstPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string_view change_mark(What what) {
  switch (what) {
    case What::added:
      return "+";
    case What::removed:
      return "-";
    case What::upgraded:
      return "↑";
    case What::downgraded:
      return "↓";
    case What::other_bytes:
    case What::other_record:
      break;
  }
  return "≠";
}

/// `a → b`, or what both are.
std::string arrow(const std::string& from, const std::string& to) {
  return from == to ? to : from + " → " + to;
}

std::string sizes_of(const PackageChange& change) {
  const auto size = [](const std::optional<ListedPackage>& side) {
    return side && side->size_bytes ? human_bytes(*side->size_bytes) : std::string{};
  };
  if (!change.from) return size(change.to);
  if (!change.to) return size(change.from);
  return arrow(size(change.from), size(change.to));
}

/// `cp311-cp311-linux_x86_64 → py3-none-any`: what two file names do not begin with in common.
std::string other_file(std::string_view from, std::string_view to) {
  std::size_t common = 0;
  for (std::size_t i = 0; i < std::min(from.size(), to.size()) && from[i] == to[i]; ++i) {
    if (from[i] == '-' || from[i] == '/') common = i + 1;
  }
  return arrow(std::string(from.substr(common)), std::string(to.substr(common)));
}

/// Why one version is not the other's.
std::string reason_of(const PackageChange& change) {
  if (change.what != What::other_bytes && change.what != What::other_record) return {};
  const ListedPackage& from = *change.from;
  const ListedPackage& to = *change.to;
  if (from.file != to.file) return "other file: " + other_file(from.file, to.file);
  if (change.what == What::other_bytes) {
    return "other bytes: " + arrow(from.digest->brief(), to.digest->brief());
  }
  if (from.requested != to.requested) {
    return to.requested ? "the recipe asks for it now" : "the recipe no longer asks for it";
  }
  return "described differently";
}

/// Rows of cells, each column as wide as its widest cell.
class Table {
 public:
  void add(std::vector<std::string> cells) {
    if (widths_.size() < cells.size()) widths_.resize(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      cells[i] = printable(cells[i]);
      widths_[i] = std::max(widths_[i], utf8_length(cells[i]));
    }
    rows_.push_back(std::move(cells));
  }

  bool empty() const { return rows_.empty(); }

  void print(Lines& out, std::string_view indent) const {
    for (const std::vector<std::string>& row : rows_) {
      std::string line{indent};
      for (std::size_t i = 0; i < row.size(); ++i) {
        // The mark stands close to its name.
        line += row[i] + std::string(widths_[i] - utf8_length(row[i]) + (i == 0 ? 1 : 2), ' ');
      }
      line.resize(line.find_last_not_of(' ') + 1);
      out.push_back(std::move(line));
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
};

void add_package(Table& table, const PackageChange& change) {
  const ListedPackage& either = change.either();
  const std::string version =
      change.from && change.to ? arrow(change.from->version, change.to->version) : either.version;
  table.add({std::string(change_mark(change.what)), either.name, version, sizes_of(change),
             reason_of(change)});
}

/// Long values stand one below the other.
void add_value(Table& table, Lines& apart, const ValueChange& change) {
  constexpr std::size_t kLine = 80;
  const std::string from = change.from.value_or("none");
  const std::string to = change.to.value_or("none");
  if (utf8_length(change.name) + utf8_length(from) + utf8_length(to) < kLine) {
    table.add({"≠", change.name, from + " → " + to});
    return;
  }
  apart.push_back("≠ " + printable(change.name));
  apart.push_back("    " + printable(from));
  apart.push_back("  → " + printable(to));
}

void head(Lines& out, std::string_view title) {
  if (!out.empty()) out.emplace_back();
  out.emplace_back(title);
}

void print_values(Lines& out, const ValueChanges& values) {
  Table table;
  Lines apart;
  for (const ValueChange& one : values) {
    if (!is_first(one)) add_value(table, apart, one);
  }
  if (table.empty() && apart.empty()) return;
  head(out, "settings");
  table.print(out, "  ");
  for (const std::string& line : apart) out.push_back("  " + line);
}

void print_first(Lines& out, const SideComparison& comparison) {
  Table table;
  Lines apart;
  for (const ValueChange& one : comparison.packages.values) {
    if (is_first(one)) add_value(table, apart, one);
  }
  for (const PackageChange& one : comparison.packages.wheels) {
    if (is_first(one)) add_package(table, one);
  }
  table.print(out, "");
  out.insert(out.end(), apart.begin(), apart.end());
}

void print_changes(Lines& out, std::string_view title, const std::vector<PackageChange>& changes,
                   bool all) {
  Table table;
  for (const PackageChange& one : changes) {
    if (all || !is_first(one)) add_package(table, one);
  }
  if (table.empty()) return;
  head(out, title);
  table.print(out, "  ");
}

std::string shared_layers(const ImageDiff& image) {
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  for (const LayerPresence& one : image.layers) {
    if (one.where != Where::both) continue;
    ++count;
    bytes += one.layer.blob.size_bytes;
  }
  return count == 0 ? "none shared" : fmt::format("{} shared, {}", count, human_bytes(bytes));
}

void print_layers(Lines& out, const ImageDiff& image) {
  Table table;
  for (const LayerPresence& one : image.layers) {
    if (one.where == Where::both) continue;
    const Layer& layer = one.layer;
    const char* mark = one.where == Where::from_only ? "-"
                       : one.where == Where::to_only ? "+"
                                                     : "≠";
    table.add({mark, layer.title.empty() ? "layer" : layer.title,
               human_bytes(layer.blob.size_bytes), layer.blob.digest.brief(),
               one.where == Where::both_packed_differently ? "compressed differently" : ""});
  }
  if (table.empty()) {
    if (!image.same_files) head(out, "layers: the same in another order");
    return;
  }
  head(out, fmt::format("layers ({})", shared_layers(image)));
  table.print(out, "  ");
}

/// `2 packages added, 1 upgraded`; empty when nothing changed.
std::string counts(const EnvironmentDiff& diff) {
  constexpr std::array<What, 6> kOrder = {What::added,      What::removed,     What::upgraded,
                                          What::downgraded, What::other_bytes, What::other_record};
  constexpr std::array<std::string_view, 6> kWords = {
      "added", "removed", "upgraded", "downgraded", "of other bytes", "described differently"};
  std::string text;
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    std::size_t count = 0;
    for (const auto* changes : {&diff.debs, &diff.wheels}) {
      count += static_cast<std::size_t>(
          std::count_if(changes->begin(), changes->end(),
                        [&](const PackageChange& one) { return one.what == kOrder.at(i); }));
    }
    if (count == 0) continue;
    text += text.empty() ? counted(count, "package") : ", " + std::to_string(count);
    text += ' ' + std::string(kWords.at(i));
  }
  return text;
}

void print_totals(Lines& out, const SideComparison& comparison) {
  Lines totals;
  if (std::string text = counts(comparison.packages); !text.empty()) totals.push_back(text);
  if (comparison.fetch && comparison.fetch->packages > 0) {
    totals.push_back(fmt::format("to download: {}, {}",
                                 counted(comparison.fetch->packages, "package"),
                                 human_bytes(comparison.fetch->bytes)));
  }
  if (comparison.image && comparison.image->fetch_layers > 0) {
    totals.push_back(fmt::format("to fetch: {}, {}",
                                 counted(comparison.image->fetch_layers, "layer"),
                                 human_bytes(comparison.image->fetch_bytes)));
  }
  if (!totals.empty()) out.emplace_back();
  out.insert(out.end(), totals.begin(), totals.end());
}

}  // namespace

void print_packages(std::vector<std::string>& out, const EnvironmentDiff& installed) {
  print_changes(out, "Python packages", installed.wheels, true);
  print_changes(out, "Debian packages", installed.debs, true);
}

std::vector<std::string> diff_text(const SideComparison& comparison) {
  if (comparison.same) return {"no difference"};
  Lines out;
  print_first(out, comparison);
  ValueChanges values = comparison.packages.values;
  if (comparison.image) {
    values.insert(values.end(), comparison.image->values.begin(), comparison.image->values.end());
  }
  print_values(out, values);
  print_changes(out, "Python packages", comparison.packages.wheels, false);
  print_changes(out, "Debian packages", comparison.packages.debs, true);
  if (comparison.image) print_layers(out, *comparison.image);
  print_totals(out, comparison);
  return out;
}

}  // namespace mlenv::cli
