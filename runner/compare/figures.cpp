#include "runner/compare/figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "base/printable.hpp"
#include "runner/compare/rows.hpp"

namespace mlenv::compare {
namespace {

struct Prefix {
  double from;
  const char* unit;
};

constexpr std::array kSecondPrefixes = {Prefix{60, "min"}, Prefix{1, "s"}, Prefix{1e-3, "ms"},
                                        Prefix{1e-6, "µs"}, Prefix{1e-9, "ns"}};
constexpr std::array kBytePrefixes = {Prefix{1e12, "TB"}, Prefix{1e9, "GB"}, Prefix{1e6, "MB"},
                                      Prefix{1e3, "kB"}, Prefix{1, "bytes"}};

/// `1 004 613`
std::string grouped(std::int64_t whole) {
  std::string text = std::to_string(std::abs(whole));
  constexpr std::size_t kThousands = 3;
  for (std::size_t at = text.size(); at > kThousands;) {
    at -= kThousands;
    text.insert(at, " ");
  }
  return whole < 0 ? "-" + text : text;
}

/// Three digits that mean something; counts stay whole.
std::string digits(double value, bool counts) {
  const double size = std::abs(value);
  constexpr double kThousand = 1000;
  constexpr double kHundred = 100;
  constexpr double kTen = 10;
  if (size >= kThousand) return grouped(std::llround(value));
  if (size >= kHundred || (counts && value == std::floor(value)))
    return fmt::format("{:.0f}", value);
  return size >= kTen ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

template <std::size_t N>
std::string with_prefix(double value, const std::array<Prefix, N>& prefixes,
                        std::string_view behind) {
  const double size = std::abs(value);
  for (const Prefix& one : prefixes) {
    // What would be rounded up to the next unit is shown in it.
    constexpr double kRounding = 0.9995;
    const bool is_last = &one == &prefixes.back();
    if (size >= one.from * kRounding || is_last) {
      return fmt::format("{} {}{}", digits(value / one.from, is_last), one.unit, behind);
    }
  }
  return {};
}

std::string drift_text(const RowResult& row, const Drift& drift) {
  return fmt::format("was {} the time before", figure(drift.median_before, row.unit));
}

void add_note(std::string& note, const std::string& text) {
  if (text.empty()) return;
  note += (note.empty() ? "" : "; ") + text;
}

std::string side_title(const Comparison& in, std::string_view side) {
  const SideResult* const found = find_side(in, side);
  return found != nullptr ? found->title : std::string(side);
}

void add_side_remarks(const Comparison& in, const SideResult& side,
                      std::vector<std::string>& remarks) {
  std::string options;
  for (const std::string& one : side.options) options += " " + printable(one);
  if (!options.empty()) {
    remarks.push_back(fmt::format("not equal: {} had{} of its own", side.title, options));
  }
  std::set<std::string> accelerators;
  for (const RowResult& row : in.rows) {
    const Cell* const cell = find_cell(row, side.id);
    if (cell != nullptr) accelerators.insert(mark_of(in, *cell));
  }
  if (accelerators.contains("emulated")) {
    remarks.push_back(fmt::format(
        "emulated: {} had no help of the hardware; its figures say nothing of one that has",
        side.title));
  }
  if (accelerators.contains("accelerator unknown")) {
    remarks.push_back(fmt::format(
        "accelerator unknown: no run of {} left a record of whether it was emulated", side.title));
  }
}

/// Without `--memory` containers may use all that there is, and a virtual machine has its own.
void add_memory_remark(const Comparison& in, const std::set<std::uint64_t>& shown,
                       std::vector<std::string>& remarks) {
  if (in.terms.memory || in.sides.size() < 2) return;
  for (const std::uint64_t one : shown) {
    for (const Machine& machine : in.sessions[one].machines) {
      if (!machine.memory_bytes || *machine.memory_bytes >= in.host.memory_bytes) continue;
      remarks.push_back(fmt::format(
          "not equal: {} had {} of memory, the other sides up to all {} of this host; --memory "
          "gives containers and the virtual machine the same",
          side_title(in, machine.side), figure(static_cast<double>(*machine.memory_bytes), "bytes"),
          figure(static_cast<double>(in.host.memory_bytes), "bytes")));
      return;
    }
  }
}

/// One for all rows that ran on another device than what they would be held against.
void add_device_remarks(const Comparison& in, std::vector<std::string>& remarks) {
  for (const SideResult& side : in.sides) {
    for (const RowResult& row : in.rows) {
      const Cell* const cell = find_cell(row, side.id);
      const Cell* const base = cell == nullptr ? nullptr : base_of(row, *cell);
      if (base == nullptr || !cell->device || !base->device) continue;
      if (*cell->device == *base->device) continue;
      remarks.push_back(
          fmt::format("not held against each other: training ran on `{}` on {} and on `{}` on {}",
                      printable(*cell->device), side.title, printable(*base->device),
                      side_title(in, base->side)));
      break;
    }
  }
}

void add_noise_remarks(const Noise& noise, const std::string& when,
                       std::vector<std::string>& remarks) {
  constexpr double kBusy = 0.1;
  constexpr double kStolen = 0.02;
  constexpr double kPercent = 100;
  if (noise.busy_before && *noise.busy_before > kBusy) {
    remarks.push_back(
        fmt::format("{}the machine was not quiet: others used {:.0f} % of its processors before",
                    when, *noise.busy_before * kPercent));
  }
  if (noise.steal && *noise.steal > kStolen) {
    remarks.push_back(fmt::format("{}a hypervisor took {:.0f} % of the processors' time", when,
                                  *noise.steal * kPercent));
  }
}

/// Those that figures which are shown come from.
std::set<std::uint64_t> sessions_shown(const Comparison& in) {
  std::set<std::uint64_t> sessions;
  for (const RowResult& row : in.rows) {
    for (const Cell& cell : row.sides) {
      const std::optional<std::uint64_t> session = newest_session(cell);
      if (session && *session < in.sessions.size() && !row.computed) sessions.insert(*session);
    }
  }
  return sessions;
}

}  // namespace

std::string figure(double value, std::string_view unit) {
  if (unit == "s") return value == 0 ? "0 s" : with_prefix(value, kSecondPrefixes, "");
  if (unit == "bytes") return with_prefix(value, kBytePrefixes, "");
  if (unit == "bytes/s") return with_prefix(value, kBytePrefixes, "/s");
  return unit.empty() ? digits(value, true) : fmt::format("{} {}", digits(value, true), unit);
}

std::string times_text(double times) { return digits(times, false); }

std::string claim_of(const Comparison& in, const RowResult& row, const Cell& cell) {
  const Cell* const base = base_of(row, cell);
  if (base == nullptr || !cell.ratio) return {};
  return fmt::format("{} times {}", times_text(*cell.ratio), side_title(in, base->side));
}

std::string other_base(const Comparison& in, const RowResult& row, const Cell& cell) {
  const Cell* const base = base_of(row, cell);
  if (base == nullptr || !cell.ratio) return {};
  const auto first = std::find_if(row.sides.begin(), row.sides.end(),
                                  [](const Cell& one) { return one.summary.has_value(); });
  return first == row.sides.end() || &*first == base ? "" : side_title(in, base->side);
}

CellWords words_of(const Comparison& in, const RowResult& row, const Cell& cell) {
  CellWords words;
  if (cell.summary) {
    words.measured = true;
    // Of memory less than nothing is what others gave back meanwhile.
    const bool is_lost = row.id.starts_with("memory.") && cell.summary->median <= 0;
    words.value = is_lost ? "lost in the noise" : figure(cell.summary->median, row.unit);
    if (cell.summary->count > 1) {
      words.interval = fmt::format("{} to {}", figure(cell.summary->low, row.unit),
                                   figure(cell.summary->high, row.unit));
    }
  } else if (cell.text) {
    words.measured = true;
    words.value = printable(*cell.text);
  } else {
    words.value = "not measured";
    words.note = printable(cell.why.value_or("no reason is known"));
    return words;
  }
  add_note(words.note, mark_of(in, cell));
  add_note(words.note, claim_of(in, row, cell));
  if (cell.relation == name_of(Relation::too_few)) add_note(words.note, "too few for a claim");
  if (cell.drift) add_note(words.note, drift_text(row, *cell.drift));
  if (cell.summary && cell.note) add_note(words.note, printable(*cell.note));
  return words;
}

std::string mark_of(const Comparison& in, const Cell& cell) {
  const Machine* const machine = machine_of(in, cell);
  if (machine == nullptr || machine->accelerator == "kvm") return {};
  return machine->accelerator == "tcg" ? "emulated" : "accelerator unknown";
}

std::string common_mark(const Comparison& in, std::string_view side) {
  std::optional<std::string> common;
  for (const RowResult& row : in.rows) {
    const Cell* const cell = find_cell(row, side);
    if (cell == nullptr || row.computed || (!cell->summary && !cell->text)) continue;
    const std::string mark = mark_of(in, *cell);
    if (common && *common != mark) return {};
    common = mark;
  }
  return common.value_or("");
}

std::string about_side(const Comparison& in, std::string_view side) {
  std::vector<std::string> all;
  for (const Machine* const one : machines_of(in, side)) {
    std::string about = one->about.value_or("accelerator unknown");
    if (std::find(all.begin(), all.end(), about) == all.end()) all.push_back(std::move(about));
  }
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : "; before: ") + one;
  return text;
}

std::vector<std::string> remarks_of(const Comparison& in) {
  std::vector<std::string> remarks;
  for (const SideResult& side : in.sides) add_side_remarks(in, side, remarks);
  const std::set<std::uint64_t> shown = sessions_shown(in);
  add_memory_remark(in, shown, remarks);
  add_device_remarks(in, remarks);
  for (const std::uint64_t one : shown) {
    const Session& session = in.sessions[one];
    add_noise_remarks(session.noise,
                      shown.size() > 1 ? fmt::format("{}: ", printable(session.started)) : "",
                      remarks);
  }
  return remarks;
}

const std::vector<ClassicRow>& classic_rows() {
  static const std::vector<ClassicRow> rows = {
      {"heavy or light?", "heavyweight | lightweight", "memory.added"},
      {"performance", "limited | native", "train.step"},
      {"own or shared operating system?", "an OS each | the host's OS", "isolation.kernel"},
      {"what is virtualized?", "hardware | the OS", "isolation.calls"},
      {"start-up", "minutes | milliseconds", "start.user"},
      {"memory", "allocated in full | as needed", "memory.rest"},
      {"isolation", "full | of processes", "isolation.processes"},
      {"to ship", "gigabytes | megabytes", "size.ship"},
  };
  return rows;
}

}  // namespace mlenv::compare
