#include "runner/job/nccl_ring.hpp"

#include <algorithm>
#include <bit>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/printable.hpp"
#include "runner/record/run_log.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostMebibytes = 256;
constexpr std::size_t kMostRingLine = 65536;
constexpr const char* kInfiniBand = "IB";

std::optional<double> slowest_link(const Preflight& found) {
  std::optional<double> slowest;
  for (const PreflightLink& link : found.links) {
    if (!link.bits_per_second) continue;
    slowest = std::min(slowest.value_or(*link.bits_per_second), *link.bits_per_second);
  }
  return slowest;
}

/// Of the node that has the least; nothing: of one it is not known.
template <class Speed>
std::optional<double> least(const Preflight& found, const Speed& speed) {
  std::optional<double> slowest;
  for (const PreflightNode& node : found.nodes) {
    const std::optional<double> one = speed(node);
    if (!one) return std::nullopt;
    slowest = std::min(slowest.value_or(*one), *one);
  }
  return slowest;
}

std::optional<double> ports_of(const Preflight& found) {
  return least(found, [](const PreflightNode& node) { return node.rdma_bits_per_second; });
}

std::string printable_member(const json& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_string() ? printable(found->get<std::string>()) : "";
}

template <class Number>
std::optional<Number> number_member(const json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  return found->get<Number>();
}

/// What one node found of it; nothing where it says nothing of NCCL.
void take_seconds(const json& nccl, std::vector<double>& longest) {
  const auto each = nccl.find("each_seconds");
  if (each == nccl.end() || !each->is_array()) return;
  longest.resize(std::max(longest.size(), each->size()));
  for (std::size_t i = 0; i < each->size(); ++i) {
    if ((*each)[i].is_number()) longest[i] = std::max(longest[i], (*each)[i].get<double>());
  }
}

/// A node that has no GPUs, or an image without NCCL: there is nothing to measure, and nothing is
/// broken.
bool is_absence(const std::string& verdict, const json& nccl) {
  if (verdict == "no-driver" || verdict == "no-gpu") return true;
  return nccl.is_object() && printable_member(nccl, "library").empty();
}

double bus_of(const PreflightNccl& nccl, double seconds) {
  const auto gpus = static_cast<double>(nccl.gpus);
  return 2 * (gpus - 1) / gpus * static_cast<double>(nccl.bytes) * kByteBits /
         std::max(seconds, 1e-9);
}

std::string sentence(const PreflightNccl& nccl) {
  if (!nccl.seconds) return "not measured: " + nccl.problem;
  std::string text = fmt::format("{} MiB on each of {} GPUs in {:.3g} s", nccl.bytes >> 20U,
                                 nccl.gpus, *nccl.seconds);
  if (nccl.bus_bits_per_second) {
    text += fmt::format(", {} on the bus", bits_text(*nccl.bus_bits_per_second));
  }
  if (!nccl.network.empty()) text += ", by " + nccl.network;
  if (nccl.expected_bus_bits_per_second) {
    text += fmt::format(" (expected {})", bits_text(*nccl.expected_bus_bits_per_second));
  }
  return text + ", NCCL " + nccl.version;
}

bool some_on_one_machine(const Preflight& found) {
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    for (std::size_t other = 0; other < i; ++other) {
      const std::string& boot = found.nodes[i].boot_id;
      if (!boot.empty() && boot == found.nodes[other].boot_id) return true;
    }
  }
  return false;
}

std::optional<double> expected_bus_bits(const Preflight& found, const PreflightNccl& nccl) {
  if (found.nodes.size() < 2 || some_on_one_machine(found)) return std::nullopt;
  if (nccl.network == kInfiniBand) return ports_of(found);
  std::optional<double> speed =
      least(found, [](const PreflightNode& node) { return node.speed_bits_per_second; });
  if (speed) *speed *= kPayloadShare;
  if (!speed) speed = slowest_link(found);
  if (!speed) return std::nullopt;
  return std::min(*speed, kMostExpectedBits);
}

void add_nccl_finding(Preflight& found, const char* standing, std::string text) {
  found.findings.push_back({"nccl", standing, {}, std::move(text)});
  if (std::string_view(standing) == "broken") {
    found.verdict = "broken";
  } else if (found.verdict == "fine") {
    found.verdict = "slow";
  }
}

}  // namespace

std::vector<std::string> nccl_words(const Preflight& links) {
  constexpr double kSeconds = 0.5;
  std::uint64_t mebibytes = kMostMebibytes;
  const std::optional<double> slowest = slowest_link(links);
  if (slowest && !ports_of(links)) {
    const double fits = *slowest * kSeconds / kByteBits / (1 << 20);
    mebibytes = std::clamp<std::uint64_t>(std::bit_floor(static_cast<std::uint64_t>(fits)), 1,
                                          kMostMebibytes);
  }
  return {fmt::format("./{}", kNcclProgram), "--across", "--size", std::to_string(mebibytes)};
}

void NcclLines::line(std::uint64_t rank, const std::string& line) {
  if (rank >= answers_.size()) return;
  const std::optional<LogLine> read = parse_log_line(line);
  if (!read || read->stream == LogStream::remark) return;
  Answer& answer = answers_[rank];
  if (answer.pending.size() < kMostRingLine) answer.pending += read->text;
  if (!read->ends) return;
  take(answer, answer.pending);
  answer.pending.clear();
}

/// NCCL says by what it goes where NCCL_DEBUG is INFO (NCCL's documentation, "Environment
/// Variables").
void NcclLines::take(Answer& answer, const std::string& text) {
  constexpr std::string_view kUsing = "NCCL INFO Using network ";
  const std::size_t found = text.find(kUsing);
  if (found != std::string::npos) {
    network_ = printable(text.substr(found + kUsing.size()));
  } else if (text.starts_with(R"({"schema":"mlenv.gpu-probe/1")")) {
    answer.text = text;
  } else if (text.find("NCCL INFO") == std::string::npos && !text.empty()) {
    answer.last = printable(text);
  }
}

PreflightNccl NcclLines::result(const std::vector<std::string>& names,
                                const std::string& failure) const {
  PreflightNccl found;
  found.network = network_;
  std::vector<double> longest;
  bool right = true;
  for (std::size_t rank = 0; rank < answers_.size(); ++rank) {
    const Answer& answer = answers_[rank];
    const json read = json::parse(answer.text, nullptr, /*allow_exceptions=*/false);
    if (!read.is_object()) {
      // One that was ended since another failed says nothing; a program that does not start does.
      if (found.problem.empty() && !answer.last.empty()) {
        found.problem = fmt::format("{}: {}", names.at(rank), answer.last);
        found.failed = true;
      }
      right = false;
      continue;
    }
    const json nccl = read.value("nccl", json());
    const std::string verdict = printable_member(read, "verdict");
    if (verdict != "works") {
      found.problem = fmt::format("{}: {}", names.at(rank), printable_member(read, "reason"));
      found.failed = !is_absence(verdict, nccl);
      return found;
    }
    if (!nccl.is_object()) continue;
    found.version = printable_member(nccl, "version");
    found.gpus = number_member<std::uint64_t>(nccl, "ranks").value_or(0);
    found.bytes = number_member<std::uint64_t>(nccl, "bytes").value_or(0);
    right = right && nccl.value("sums_right", json()) == true;
    take_seconds(nccl, longest);
  }
  if (!failure.empty() || !right || longest.empty()) {
    if (found.problem.empty()) found.problem = failure.empty() ? "a node did not answer" : failure;
    found.failed = true;
    return found;
  }
  found.seconds = *std::min_element(longest.begin(), longest.end());
  if (found.gpus > 1) found.bus_bits_per_second = bus_of(found, *found.seconds);
  return found;
}

PreflightNccl not_measured(std::string why) {
  PreflightNccl made;
  made.problem = std::move(why);
  return made;
}

void add_nccl(Preflight& preflight, PreflightNccl nccl) {
  if (nccl.bus_bits_per_second) {
    nccl.expected_bus_bits_per_second = expected_bus_bits(preflight, nccl);
  }
  preflight.nccl = sentence(nccl);
  if (nccl.failed) {
    add_nccl_finding(preflight, "broken",
                     "NCCL's all-reduce over the nodes' GPUs failed: " + nccl.problem);
  } else if (nccl.expected_bus_bits_per_second &&
             *nccl.bus_bits_per_second < *nccl.expected_bus_bits_per_second * kSlowShare) {
    add_nccl_finding(
        preflight, "slow",
        fmt::format("NCCL's all-reduce gets {}; expected {}", bits_text(*nccl.bus_bits_per_second),
                    bits_text(*nccl.expected_bus_bits_per_second)));
  }
  if (nccl.seconds && nccl.network == "Socket" && ports_of(preflight)) {
    add_nccl_finding(
        preflight, "slow",
        "NCCL goes by sockets, and the nodes have InfiniBand: `--rdma` gives it to the ranks");
  }
  preflight.nccl_all_reduce = std::move(nccl);
}

}  // namespace mlenv::job
