// A preflight as JSON and as people read it.
#include <algorithm>

#include "base/record_json.hpp"
#include "runner/job/preflight.hpp"

namespace mlenv::job {
namespace {

constexpr RecordKind kPreflightKind{"mlenv.preflight/1", "a preflight", ""};
constexpr std::size_t kMostInMatrix = 12;

struct Range {
  std::optional<double> least;
  std::optional<double> most;
  void add(const std::optional<double>& value) {
    if (!value) return;
    least = std::min(least.value_or(*value), *value);
    most = std::max(most.value_or(*value), *value);
  }
};

std::string rates(const Range& range) {
  if (!range.least) return "-";
  const std::string least = bits_text(*range.least);
  const std::string most = bits_text(*range.most);
  return least == most ? most : least + " to " + most;
}

std::string trips(const Range& range) {
  if (!range.least) return "-";
  constexpr double kMilli = 1e3;
  const std::string least = fmt::format("{:.2f}", *range.least * kMilli);
  const std::string most = fmt::format("{:.2f}", *range.most * kMilli);
  return (least == most ? most : least + " to " + most) + " ms";
}

using TableRow = std::vector<std::string>;

void add_table(std::vector<std::string>& lines, const std::vector<TableRow>& rows) {
  std::vector<std::size_t> widths;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const TableRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], widths[i]) : row[i];
    }
    lines.push_back(std::move(line));
  }
}

TableRow row_of(const Preflight& found, std::size_t node) {
  Range out;
  Range in;
  Range trip;
  for (const PreflightLink& link : found.links) {
    if (link.from == node) out.add(link.bits_per_second);
    if (link.to == node) in.add(link.bits_per_second);
    if (link.from == node) trip.add(link.round_trip_seconds);
  }
  const PreflightNode& one = found.nodes[node];
  const std::string speed =
      one.speed_bits_per_second ? bits_text(*one.speed_bits_per_second) : "unknown";
  return {printable(one.name), printable(one.interface), speed, rates(out), rates(in), trips(trip)};
}

std::string cell(const Preflight& found, std::size_t from, std::size_t to) {
  if (from == to) return "";
  const PreflightLink& link = found.links[link_index(found.nodes.size(), from, to)];
  if (!link.reached.empty() && !link.bits_per_second && link.standing == "broken") {
    return link.reached == "reached" ? "stuck" : link.reached;
  }
  if (!link.bits_per_second) return "-";
  constexpr double kMega = 1e6;
  return fmt::format("{:.0f}", *link.bits_per_second / kMega);
}

void add_matrix(std::vector<std::string>& lines, const Preflight& found) {
  const std::size_t count = found.nodes.size();
  if (count < 2 || count > kMostInMatrix) return;
  std::vector<TableRow> rows(1, TableRow{"Mbit/s from, to"});
  for (const PreflightNode& node : found.nodes) rows.front().push_back(printable(node.name));
  for (std::size_t from = 0; from < count; ++from) {
    TableRow row{printable(found.nodes[from].name)};
    for (std::size_t to = 0; to < count; ++to) row.push_back(cell(found, from, to));
    rows.push_back(std::move(row));
  }
  lines.emplace_back();
  add_table(lines, rows);
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;
  return bytes >= kMebi ? fmt::format("{:.3g} MiB", static_cast<double>(bytes) / kMebi)
                        : fmt::format("{} KiB", bytes >> 10U);
}

std::string ring_text(const PreflightRing& ring) {
  if (!ring.seconds || !ring.bus_bits_per_second) {
    return "all-reduce, ring of TCP: not measured: " + printable(ring.problem);
  }
  std::string text =
      fmt::format("all-reduce, ring of TCP: {} in {:.3g} s, {} on the bus", size_text(ring.bytes),
                  *ring.seconds, bits_text(*ring.bus_bits_per_second));
  if (ring.expected_bus_bits_per_second) {
    text += fmt::format(" (the slowest link carries {})",
                        bits_text(*ring.expected_bus_bits_per_second));
  }
  return text;
}

}  // namespace

std::string bits_text(double bits_per_second) {
  constexpr double kKilo = 1e3;
  constexpr double kMega = 1e6;
  constexpr double kGiga = 1e9;
  if (bits_per_second >= kGiga) return fmt::format("{:.1f} Gbit/s", bits_per_second / kGiga);
  const double megabits = bits_per_second / kMega;
  if (megabits >= 10) return fmt::format("{:.0f} Mbit/s", megabits);
  if (megabits >= 1) return fmt::format("{:.1f} Mbit/s", megabits);
  return fmt::format("{:.0f} kbit/s", bits_per_second / kKilo);
}

std::string render_preflight(const Preflight& preflight) {
  return render_record(preflight, kPreflightKind);
}

Preflight parse_preflight(std::string_view text, std::string_view shown) {
  return read_record<Preflight>(text, shown, kPreflightKind);
}

std::vector<std::string> preflight_text(const Preflight& found) {
  std::vector<std::string> lines;
  std::vector<TableRow> rows{{"node", "interface", "speed", "sends", "receives", "round trip"}};
  for (std::size_t node = 0; node < found.nodes.size(); ++node) {
    rows.push_back(row_of(found, node));
  }
  add_table(lines, rows);
  add_matrix(lines, found);
  lines.emplace_back();
  if (found.nodes.size() > 1) lines.push_back(ring_text(found.ring));
  lines.push_back("all-reduce, NCCL: " + found.nccl);
  lines.push_back(fmt::format(
      "measured in {:.1f} s: {} rounds of pairs, one stream of TCP for {:.2g} "
      "s each way; {} pairs again, alone",
      found.seconds, found.method.rounds, found.method.seconds_each_way, found.method.repeated));
  for (const PreflightFinding& one : found.findings) {
    lines.push_back(fmt::format("{}: {}", one.standing, printable(one.text)));
  }
  if (found.findings.empty()) lines.emplace_back("fine");
  return lines;
}

std::vector<std::string> preflight_notes(const Preflight& found) {
  std::vector<std::string> notes{preflight_summary(found)};
  for (const PreflightFinding& one : found.findings) {
    notes.push_back(fmt::format("preflight: {}: {}", one.standing, one.text));
  }
  return notes;
}

std::string preflight_summary(const Preflight& found) {
  Range all;
  Range trip;
  for (const PreflightLink& link : found.links) {
    all.add(link.bits_per_second);
    trip.add(link.round_trip_seconds);
  }
  std::string text = fmt::format("preflight: {} nodes, {} each way, round trips of {}",
                                 found.nodes.size(), rates(all), trips(trip));
  if (found.ring.seconds) {
    text += fmt::format(", an all-reduce of {} in {:.3g} s", size_text(found.ring.bytes),
                        *found.ring.seconds);
  }
  return text;
}

}  // namespace mlenv::job
