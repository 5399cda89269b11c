#include "runner/compare/output.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mlenv::compare {
namespace {

using nlohmann::json;

constexpr std::string_view kOurPrefix = "mlenv-compare ";
constexpr double kBytesPerMebibyte = 1048576.0;

std::optional<double> leading_figure(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// A text that is a number as a whole.
std::optional<double> whole_figure(std::string_view text) {
  double value = 0;
  const char* const behind = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), behind, value);
  if (error != std::errc{} || end != behind || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// The word at the beginning, taken off.
std::string take_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  std::string word(text.substr(0, end));
  text = end == std::string_view::npos ? std::string_view{} : trim(text.substr(end));
  return word;
}

/// The number behind `label`.
std::optional<double> figure_after(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  return leading_figure(trim(text.substr(at + label.size())));
}

/// sysbench memory: `6656.00 MiB transferred (6600.34 MiB/sec)`
std::optional<double> sysbench_memory(std::string_view text) {
  const std::optional<double> rate = figure_after(text, "MiB transferred (");
  if (!rate) return std::nullopt;
  return *rate * kBytesPerMebibyte;
}

/// stress-ng: `… matrix  623  1.00  0.96  0.01  622.89  642.31`, operations by wall time last but
/// one.
std::optional<double> stress_ng(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t at = line.find("] matrix ");
    if (at == std::string_view::npos) continue;
    constexpr std::size_t kWallRate = 5;
    std::string_view rest = trim(line.substr(at + 2));
    std::string word;
    for (std::size_t i = 0; i <= kWallRate; ++i) word = take_word(rest);
    return leading_figure(word);
  }
  return std::nullopt;
}

/// The JSON in what a program printed; null where there is none.
json answer_in(std::string_view text) {
  const std::size_t begin = text.find('{');
  const std::size_t end = text.rfind('}');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return nullptr;
  }
  json value = json::parse(text.substr(begin, end - begin + 1), nullptr, false);
  return value.is_discarded() ? json(nullptr) : value;
}

std::optional<double> figure_at(const json& value, const char* pointer) {
  const json::json_pointer at(pointer);
  if (!value.is_object() || !value.contains(at) || !value.at(at).is_number()) return std::nullopt;
  return value.at(at).get<double>();
}

/// mlenv.error/1's, outermost first.
std::string of_frames(const json& frames) {
  std::string text;
  for (const json& frame : frames) {
    if (!frame.is_string()) continue;
    text += (text.empty() ? "" : ": ") + printable(frame.get<std::string>());
  }
  return text;
}

std::optional<double> scaled_if_any(std::optional<double> value, double by) {
  // Zero is what fio and iperf3 say where nothing was transferred.
  if (!value || *value <= 0) return std::nullopt;
  return *value * by;
}

}  // namespace

Said read_said(std::string_view output) {
  Said said;
  for (std::string_view line : split(output, '\n')) {
    if (!line.starts_with(kOurPrefix)) continue;
    line.remove_prefix(kOurPrefix.size());
    const std::string word = take_word(line);
    const std::string row = take_word(line);
    if (word == "value") {
      if (const auto value = whole_figure(line)) said.values[row] = *value;
    } else if (word == "text") {
      said.texts[row] = printable(line);
    } else if (word == "why") {
      said.whys[row] = printable(line);
    }
  }
  return said;
}

std::optional<std::string> read_mark(std::string_view line) {
  constexpr std::string_view kMark = "mlenv-compare mark ";
  if (!line.starts_with(kMark)) return std::nullopt;
  return std::string(trim(line.substr(kMark.size())));
}

std::optional<Used> read_used(std::string_view err) {
  constexpr std::string_view kUsed = "mlenv-compare-used ";
  const std::size_t at = err.rfind(kUsed);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view line = err.substr(at + kUsed.size());
  const json answer = answer_in(line.substr(0, line.find('\n')));
  const std::optional<double> cpu = figure_at(answer, "/cpu");
  const std::optional<double> memory = figure_at(answer, "/memory");
  if (!cpu || !memory) return std::nullopt;
  return Used{*cpu, *memory};
}

std::map<std::string, ToolSaid> read_tools(std::string_view output) {
  constexpr std::string_view kTool = "tool ";
  constexpr std::string_view kStatus = "status ";
  std::map<std::string, ToolSaid> tools;
  ToolSaid* current = nullptr;
  for (const std::string_view line : split(output, '\n')) {
    const std::string_view ours =
        line.starts_with(kOurPrefix) ? line.substr(kOurPrefix.size()) : std::string_view{};
    if (ours.starts_with(kTool)) {
      current = &tools[std::string(trim(ours.substr(kTool.size())))];
    } else if (current == nullptr) {
      continue;
    } else if (ours.starts_with(kStatus)) {
      const auto status = whole_figure(trim(ours.substr(kStatus.size())));
      if (status) current->status = static_cast<int>(*status);
      current = nullptr;
    } else {
      current->text += std::string(line) + "\n";
    }
  }
  return tools;
}

std::optional<double> read_tool(std::string_view row, std::string_view output) {
  constexpr double kByte = 1.0 / 8;
  constexpr double kNano = 1e-9;
  constexpr double kMicro = 1e-6;
  if (row == "cpu.integer" || row == "cpu.all") return figure_after(output, "events per second:");
  if (row == "cpu.float") return stress_ng(output);
  if (row == "memory.bandwidth") return sysbench_memory(output);
  const json answer = answer_in(output);
  if (row == "disk.read") return scaled_if_any(figure_at(answer, "/jobs/0/read/bw_bytes"), 1);
  if (row == "disk.write") return scaled_if_any(figure_at(answer, "/jobs/0/write/bw_bytes"), 1);
  if (row == "disk.random") return scaled_if_any(figure_at(answer, "/jobs/0/read/iops"), 1);
  if (row == "disk.fsync") {
    return scaled_if_any(figure_at(answer, "/jobs/0/sync/lat_ns/mean"), kNano);
  }
  if (row == "network.bandwidth") {
    return scaled_if_any(figure_at(answer, "/end/sum_received/bits_per_second"), kByte);
  }
  if (row == "network.latency") {
    return scaled_if_any(figure_at(answer, "/end/streams/0/sender/mean_rtt"), kMicro);
  }
  return std::nullopt;
}

std::string complaint_of(std::string_view output) {
  const json answer = answer_in(output);
  if (answer.is_object() && answer.contains("frames")) return of_frames(answer.at("frames"));
  for (const char* const pointer : {"/error", "/message"}) {
    const json::json_pointer at(pointer);
    if (answer.is_object() && answer.contains(at) && answer.at(at).is_string()) {
      return printable(answer.at(at).get<std::string>());
    }
  }
  std::string last;
  for (const std::string_view line : split(output, '\n')) {
    const std::string_view text = trim(line);
    if (text.empty() || text.starts_with("hint: ")) continue;
    last = text;
  }
  constexpr std::size_t kMost = 200;
  if (last.size() > kMost) last.resize(kMost);
  return printable(last);
}

std::optional<double> available_bytes(std::string_view meminfo) {
  const std::optional<double> kibibytes = figure_after(meminfo, "MemAvailable:");
  if (!kibibytes) return std::nullopt;
  constexpr double kKibi = 1024;
  return *kibibytes * kKibi;
}

std::optional<CpuTimes> read_cpu_times(std::string_view stat) {
  // user nice system idle iowait irq softirq steal; guest times are in user's already.
  constexpr std::size_t kFields = 8;
  constexpr std::size_t kIdle = 3;
  constexpr std::size_t kWaiting = 4;
  constexpr std::size_t kSteal = 7;
  std::string_view line = stat.substr(0, stat.find('\n'));
  if (take_word(line) != "cpu") return std::nullopt;
  std::array<double, kFields> fields{};
  for (double& field : fields) {
    const std::optional<double> value = leading_figure(take_word(line));
    if (!value) return std::nullopt;
    field = *value;
  }
  CpuTimes times;
  times.all = std::accumulate(fields.begin(), fields.end(), 0.0);
  times.steal = fields[kSteal];
  times.busy = times.all - fields[kIdle] - fields[kWaiting] - fields[kSteal];
  return times;
}

}  // namespace mlenv::compare
