#include "cli/watch_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/printable.hpp"
#include "cli/ui.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

using watch::GpuNow;
using watch::Sample;

constexpr std::size_t kLabel = 11;
constexpr std::size_t kLongestPicture = 30;
constexpr std::size_t kShortestPicture = 8;
constexpr std::size_t kTextBesidePicture = 40;

std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // not the rest of a character
  }));
}

/// The first so many characters, the last of them an ellipsis where some are left out.
std::string fitted(std::string_view text, std::size_t columns) {
  if (length_of(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::size_t left = columns;  // with the one that does not fit
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (begins && left-- == 1) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string fitted_column(std::string_view text, std::size_t columns) {
  std::string out = fitted(text, columns);
  out.append(columns - length_of(out), ' ');
  return out;
}

std::string rate_text(double bytes) {
  return human_bytes(static_cast<std::uint64_t>(std::llround(std::max(bytes, 0.0)))) + "/s";
}

std::string percent_of(double part, double whole) {
  return fmt::format("{:.0f} %", whole > 0 ? 100 * part / whole : 0.0);
}

/// Broken at blanks; all lines but the first of a sentence stand back.
void wrap(std::string_view text, std::size_t columns, bool continues,
          std::vector<std::string>& into) {
  constexpr std::string_view kIndent = "  ";
  std::string line(continues ? kIndent : "");
  bool empty = true;
  for (const std::string_view word : split(text, ' ')) {
    if (!empty && length_of(line) + 1 + length_of(word) > columns) {
      into.push_back(fitted(line, columns));
      line = kIndent;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  into.push_back(fitted(line, columns));
}

class Screen {
 public:
  explicit Screen(const WatchScreen& from) : from_(from) {}

  std::vector<std::string> lines() {
    header();
    if (from_.newest.empty()) {
      add("waiting for the first figures");
    } else {
      figures();
    }
    const std::vector<std::string> bottom = footer();
    processes(bottom.size());
    lines_.insert(lines_.end(), bottom.begin(), bottom.end());
    if (lines_.size() > from_.rows) lines_.resize(from_.rows);
    return std::move(lines_);
  }

 private:
  const Sample& last() const { return from_.newest.back(); }
  void add(std::string_view text) { lines_.push_back(fitted(text, from_.columns)); }
  std::string strong(std::string text) const {
    return from_.color ? "\033[1m" + std::move(text) + "\033[0m" : text;
  }
  std::string faint(std::string text) const {
    return from_.color ? "\033[2m" + std::move(text) + "\033[0m" : text;
  }

  void header() {
    const std::size_t state = length_of(from_.state);
    if (from_.columns > state + kLabel) {
      lines_.push_back(strong(fitted_column(from_.title, from_.columns - state - 1)) + " " +
                       from_.state);
    } else {
      add(from_.title);
    }
    lines_.emplace_back();
  }

  std::size_t picture() const {
    if (from_.columns < kLabel + kShortestPicture + kTextBesidePicture) return 0;
    return std::min(from_.columns - kLabel - kTextBesidePicture, kLongestPicture);
  }

  template <class Get>
  void row(std::string_view label, double full, Get&& get, const std::string& text) {
    const std::size_t width = picture();
    std::string line;
    if (width > 0) {
      std::vector<double> values;
      for (const Sample& one : from_.newest) values.push_back(get(one));
      if (full <= 0) full = *std::max_element(values.begin(), values.end());
      line = sparkline(values, full, width) + "  ";
    }
    const std::size_t used = kLabel + length_of(line);
    const std::size_t room = from_.columns > used ? from_.columns - used : 0;
    lines_.push_back(faint(fitted_column(label, kLabel)) + line + fitted(text, room));
  }

  void figures() {
    const watch::CpuSample& cpu = last().cpu;
    std::string text = fmt::format("{:.1f} of {:.4g}", cpu.used, cpu.usable);
    constexpr double kWorthTelling = 0.1;
    if (cpu.queued >= kWorthTelling) text += fmt::format(", {:.1f} queued", cpu.queued);
    if (cpu.others >= kWorthTelling) text += fmt::format(", others use {:.1f}", cpu.others);
    row(
        "processors", cpu.usable, [](const Sample& one) { return one.cpu.used; }, text);
    gpus();
    memory();
    io();
    looks();
    lines_.emplace_back();
  }

  void gpus() {
    constexpr double kPercent = 100;
    if (last().gpus_unknown) add(fitted_column("GPUs", kLabel) + printable(*last().gpus_unknown));
    for (const GpuNow& gpu : last().gpus.value_or(std::vector<GpuNow>{})) {
      std::string text = gpu.busy_percent ? fmt::format("{} %", *gpu.busy_percent) : "?";
      if (gpu.memory_used_bytes && gpu.memory_bytes) {
        text += fmt::format(", {} of {}", human_bytes(*gpu.memory_used_bytes),
                            human_bytes(*gpu.memory_bytes));
      }
      if (gpu.power_watts) text += fmt::format(", {:.0f} W", *gpu.power_watts);
      if (gpu.temperature_celsius) text += fmt::format(", {} °C", *gpu.temperature_celsius);
      const auto busy = [&](const Sample& one) {
        for (const GpuNow& then : one.gpus.value_or(std::vector<GpuNow>{})) {
          if (then.index == gpu.index) return static_cast<double>(then.busy_percent.value_or(0));
        }
        return 0.0;
      };
      row(fmt::format("GPU {}", gpu.index), kPercent, busy, text);
    }
  }

  void memory() {
    const watch::MemorySample& memory = last().memory;
    const bool limited = memory.limit_bytes && memory.group_bytes;
    const double full = limited ? static_cast<double>(*memory.limit_bytes) : 0;
    std::string text = human_bytes(limited ? *memory.group_bytes : memory.resident_bytes);
    if (limited) text += " of " + human_bytes(*memory.limit_bytes);
    if (memory.swapped_bytes > 0) text += ", " + human_bytes(memory.swapped_bytes) + " swapped";
    row(
        "memory", full,
        [&](const Sample& one) {
          return static_cast<double>(limited ? one.memory.group_bytes.value_or(0)
                                             : one.memory.resident_bytes);
        },
        text);
  }

  void io() {
    const watch::IoSample& io = last().io;
    if (io.read_bytes_per_second) {
      row(
          "disk", 0,
          [](const Sample& one) {
            return one.io.read_bytes_per_second.value_or(0) +
                   one.io.written_bytes_per_second.value_or(0);
          },
          fmt::format("{} read, {} written", rate_text(*io.read_bytes_per_second),
                      rate_text(io.written_bytes_per_second.value_or(0))));
    }
    if (io.received_bytes_per_second) {
      row(
          "network", 0,
          [](const Sample& one) {
            return one.io.received_bytes_per_second.value_or(0) +
                   one.io.sent_bytes_per_second.value_or(0);
          },
          fmt::format("{} in, {} out{}", rate_text(*io.received_bytes_per_second),
                      rate_text(io.sent_bytes_per_second.value_or(0)),
                      io.network_of_machine ? " (machine)" : ""));
    }
  }

  void looks() {
    const watch::LookCounts& looks = last().looks;
    const auto total = static_cast<double>(looks.total());
    if (total <= 0) return;
    struct Part {
      std::uint64_t count;
      const char* name;
    };
    std::array parts = {Part{looks.disk, "for files"},  Part{looks.network, "for the network"},
                        Part{looks.output, "to write"}, Part{looks.pipe, "for a pipe"},
                        Part{looks.time, "asleep"},     Part{looks.other, "for something else"}};
    const auto* const most = std::max_element(
        parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.count < b.count; });
    std::string text = "nothing";
    if (most->count > 0) {
      text = fmt::format("{} {}", percent_of(static_cast<double>(most->count), total), most->name);
      if (!looks.waited_at.empty()) text += ": " + printable(looks.waited_at);
    }
    row(
        "waits", 1,
        [](const Sample& one) {
          const auto all = static_cast<double>(one.looks.total());
          return all > 0 ? 1 - static_cast<double>(one.looks.running) / all : 0.0;
        },
        text);
  }

  void processes(std::size_t below) {
    if (from_.newest.empty()) return;
    const std::size_t used = lines_.size() + below;
    const std::size_t room = from_.rows > used + 2 ? from_.rows - used - 2 : 0;  // head, blank
    if (room == 0 || last().processes.empty()) return;
    constexpr const char* kForm = "{:>8} {:>6} {:>8} {:>9} {:>11}  {}";
    lines_.push_back(faint(fitted(
        fmt::format(kForm, "PID", "CPUS", "THREADS", "MEMORY", "READ", "PROCESS"), from_.columns)));
    std::size_t shown = 0;
    for (const watch::ProcessSample& one : last().processes) {
      if (shown++ == room) break;
      add(fmt::format(kForm, one.id, fmt::format("{:.2f}", one.cpus), one.threads,
                      human_bytes(one.resident_bytes),
                      one.read_bytes_per_second ? rate_text(*one.read_bytes_per_second) : "",
                      printable(one.name)));
    }
    lines_.emplace_back();
  }

  std::vector<std::string> footer() const {
    std::vector<std::string> bottom;
    if (!from_.so_far.empty()) {
      const watch::Finding& first = from_.so_far.front();
      wrap(fmt::format("so far: {}: {}", first.rule, printable(first.saw)), from_.columns, false,
           bottom);
      if (!first.means.empty()) wrap(printable(first.means), from_.columns, true, bottom);
    }
    bottom.push_back(faint(fitted("q leaves; the run goes on", from_.columns)));
    return bottom;
  }

  const WatchScreen& from_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string sparkline(const std::vector<double>& values, double full, std::size_t width) {
  constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t shown = std::min(values.size(), width);
  std::string line(width - shown, ' ');
  for (std::size_t i = values.size() - shown; i < values.size(); ++i) {
    const double share = full > 0 ? std::clamp(values[i] / full, 0.0, 1.0) : 0.0;
    line +=
        kBlocks.at(std::min(static_cast<std::size_t>(share * kBlocks.size()), kBlocks.size() - 1));
  }
  return line;
}

std::vector<std::string> watch_screen(const WatchScreen& screen) { return Screen{screen}.lines(); }

std::string watch_line(const Sample& sample) {
  std::string line = fmt::format("{:.1f}/{:.4g} CPUs", sample.cpu.used, sample.cpu.usable);
  for (const GpuNow& gpu : sample.gpus.value_or(std::vector<GpuNow>{})) {
    line += fmt::format(", GPU {} {}", gpu.index,
                        gpu.busy_percent ? fmt::format("{} %", *gpu.busy_percent) : "?");
  }
  line += ", " + human_bytes(sample.memory.resident_bytes);
  if (sample.io.read_bytes_per_second) {
    line += fmt::format(", {} read", rate_text(*sample.io.read_bytes_per_second));
  }
  if (sample.io.received_bytes_per_second) {
    line += fmt::format(", {} received", rate_text(*sample.io.received_bytes_per_second));
  }
  const auto total = static_cast<double>(sample.looks.total());
  const auto waiting = static_cast<double>(sample.looks.total() - sample.looks.running);
  if (waiting > 0) line += ", waits " + percent_of(waiting, total);
  return line;
}

std::vector<std::string> watch_answer_text(const watch::Answer& answer) {
  std::vector<std::string> lines;
  for (const watch::Finding& one : answer.findings) {
    lines.push_back(fmt::format("{}: {}", one.rule, printable(one.saw)));
    if (!one.means.empty()) lines.push_back("  " + printable(one.means));
    for (const std::string& advice : one.advice) lines.push_back("  try: " + printable(advice));
  }
  return lines;
}

}  // namespace mlenv::cli
