#include "runner/probe/report.hpp"

#include <array>
#include <cstdio>

namespace mlenv::probe {
namespace {

std::string text_or_null(const std::string& text) {
  return text.empty() ? "null" : json_text(text);
}

std::string truth(const std::optional<bool>& value) {
  return !value ? "null" : *value ? "true" : "false";
}

/// Whole bytes per second.
std::string rate(const Rate& value) {
  return value ? std::to_string(static_cast<std::uint64_t>(*value)) : "null";
}

std::string json_number(const std::optional<double>& value) {
  if (!value) return "null";
  std::array<char, 40> text{};
  (void)std::snprintf(text.data(), text.size(), "%.9f", *value);
  return text.data();
}

/// `"key":value`, with a comma before it unless it is the first.
class Members {
 public:
  Members& add(std::string_view key, std::string_view value) {
    if (!text_.empty()) text_ += ',';
    text_ += json_text(key);
    text_ += ':';
    text_ += value;
    return *this;
  }
  const std::string& text() const { return text_; }
  std::string object() const { return '{' + text_ + '}'; }

 private:
  std::string text_;
};

template <class Items, class Render>
std::string json_list(const Items& items, const Render& render) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ',';
    out += render(item);
  }
  return out + ']';
}

std::string object_of(const GpuReport& gpu) {
  return Members()
      .add("index", std::to_string(gpu.index))
      .add("name", text_or_null(gpu.name))
      .add("uuid", text_or_null(gpu.uuid))
      .add("compute_capability", text_or_null(gpu.compute_capability))
      .add("memory_bytes", gpu.memory_bytes == 0 ? "null" : std::to_string(gpu.memory_bytes))
      .add("kernel_right", truth(gpu.kernel_right))
      .add("host_to_device_bytes_per_second", rate(gpu.host_to_device))
      .add("device_to_host_bytes_per_second", rate(gpu.device_to_host))
      .add("device_to_device_bytes_per_second", rate(gpu.device_to_device))
      .add("problem", text_or_null(gpu.problem))
      .object();
}

std::string object_of(const PairReport& pair) {
  return Members()
      .add("from", std::to_string(pair.from))
      .add("to", std::to_string(pair.to))
      .add("peer_access", truth(pair.peer_access))
      .add("bytes_per_second", rate(pair.rate))
      .add("problem", text_or_null(pair.problem))
      .object();
}

std::string object_of(const NcclReport& nccl) {
  Rate algorithm;
  Rate bus;
  if (nccl.seconds && *nccl.seconds > 0) {
    algorithm = static_cast<double>(nccl.bytes) / *nccl.seconds;
    bus = bus_rate(nccl.bytes, *nccl.seconds, nccl.ranks);
  }
  return Members()
      .add("library", text_or_null(nccl.library))
      .add("version", text_or_null(nccl.version))
      .add("ranks", std::to_string(nccl.ranks))
      .add("bytes", std::to_string(nccl.bytes))
      .add("sums_right", truth(nccl.sums_right))
      .add("seconds", json_number(nccl.seconds))
      .add("algorithm_bytes_per_second", rate(algorithm))
      .add("bus_bytes_per_second", rate(bus))
      .add("problem", text_or_null(nccl.problem))
      .add("each_seconds",
           json_list(nccl.each_seconds, [](double one) { return json_number(one); }))
      .object();
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "works",          "no-driver", "no-gpu", "driver-mismatch", "driver-too-old",
      "compat-refused", "not-ready", "busy",   "driver-fails",    "fails"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

Verdict verdict_named(std::string_view name) {
  for (int i = 0; i < static_cast<int>(Verdict::fails); ++i) {
    if (name_of(static_cast<Verdict>(i)) == name) return static_cast<Verdict>(i);
  }
  return Verdict::fails;
}

int exit_status(Verdict verdict) {
  constexpr int kNo = 3;
  return verdict == Verdict::works ? 0 : kNo;
}

Judgement judge(const Report& report) {
  for (const GpuReport& gpu : report.gpus) {
    if (!gpu.problem.empty()) {
      return {Verdict::fails, "GPU " + std::to_string(gpu.index) + ": " + gpu.problem, ""};
    }
  }
  for (const PairReport& pair : report.pairs) {
    if (!pair.problem.empty()) {
      return {Verdict::fails,
              "GPU " + std::to_string(pair.from) + " to " + std::to_string(pair.to) + ": " +
                  pair.problem,
              ""};
    }
  }
  if (report.nccl && !report.nccl->problem.empty()) {
    return {Verdict::fails, "NCCL: " + report.nccl->problem, ""};
  }
  return {};
}

Rate bus_rate(std::uint64_t bytes, double seconds, int ranks) {
  if (ranks < 2 || seconds <= 0) return std::nullopt;
  return static_cast<double>(bytes) / seconds * 2 * (ranks - 1) / ranks;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20) {
      std::array<char, 8> escape{};
      (void)std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(byte));
      out += escape.data();
    } else {
      out += byte < 0x7f ? c : '?';
    }
  }
  return out + '"';
}

std::string members_of(const Report& report) {
  const std::string driver = Members()
                                 .add("library", text_or_null(report.library))
                                 .add("cuda_version", text_or_null(report.cuda_version))
                                 .object();
  const auto object = [](const auto& item) { return object_of(item); };
  return Members()
      .add("driver", driver)
      .add("gpus", json_list(report.gpus, object))
      .add("pairs", json_list(report.pairs, object))
      .add("nccl", report.nccl ? object_of(*report.nccl) : "null")
      .text();
}

std::string answer_of(const Judgement& judgement, std::string_view members) {
  return '{' +
         Members()
             .add("schema", json_text("mlenv.gpu-probe/1"))
             .add("verdict", json_text(name_of(judgement.verdict)))
             .add("reason", text_or_null(judgement.reason))
             .add("advice", text_or_null(judgement.advice))
             .text() +
         ',' + std::string(members) + '}';
}

}  // namespace mlenv::probe
