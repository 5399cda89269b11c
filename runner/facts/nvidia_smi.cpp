#include <algorithm>

#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/text.hpp"
#include "runner/facts/nvidia.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kBytesPerMib = std::uint64_t{1} << 20;
constexpr std::string_view kQueryFields =
    "index,name,uuid,pci.bus_id,memory.total,mig.mode.current,ecc.mode.current,persistence_mode,"
    "pcie.link.gen.max,pcie.link.width.max";
constexpr std::size_t kFieldCount = 10;

/// One cell; nvidia-smi writes `[N/A]`, `[Not Supported]`, `[Unknown Error]` where it has no value.
class SmiRow {
 public:
  SmiRow(std::string_view line, std::string source) : source_(std::move(source)) {
    for (const std::string_view cell : split(line, ',')) cells_.push_back(trim(cell));
  }
  std::size_t size() const { return cells_.size(); }
  Text text(std::size_t at) const {
    const std::string_view cell = cells_.at(at);
    if (cell.empty() || cell.front() == '[' || cell == "N/A") {
      return unknown<std::string>(fmt::format("{}: {}", source_, cell));
    }
    return known(std::string(cell), source_);
  }
  Number number(std::size_t at) const { return derived<std::uint64_t>(text(at), number_of); }
  Truth enabled(std::size_t at) const {
    return derived<bool>(text(at), [](const std::string& word) -> std::optional<bool> {
      if (word == "Enabled") return true;
      if (word == "Disabled") return false;
      return std::nullopt;
    });
  }

 private:
  std::vector<std::string_view> cells_;
  std::string source_;
};

Text query(const FactSources& from, const std::string& fields) {
  return from.ask({"nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits"});
}

/// `13.0` of the frame around nvidia-smi's table: `CUDA Version: 13.0`.
std::optional<std::string> cuda_of_frame(const std::string& text) {
  constexpr std::string_view kName = "CUDA Version:";
  const std::size_t at = text.find(kName);
  if (at == std::string::npos) return std::nullopt;
  const auto words = words_of(std::string_view(text).substr(at + kName.size()));
  if (words.empty() || !is_digit(words[0].front())) return std::nullopt;
  return std::string(words[0]);
}

/// Of its failure: `Driver/library version mismatch NVML library version: 550.54`.
Text library_version(const std::string& failure) {
  const std::size_t at = failure.find("NVML library version:");
  const auto version =
      at == std::string::npos ? std::nullopt : driver_version(std::string_view(failure).substr(at));
  return version ? known(*version, "nvidia-smi") : unknown<std::string>(failure);
}

}  // namespace

Fact<std::vector<Gpu>> gpus_of_csv(const Text& csv, bool with_capability) {
  return derived<std::vector<Gpu>>(
      csv, [&](const std::string& text) -> std::optional<std::vector<Gpu>> {
        std::vector<Gpu> gpus;
        for (const std::string_view line : split(text, '\n')) {
          if (trim(line).empty()) continue;
          const SmiRow row(line, "nvidia-smi");
          if (row.size() != kFieldCount + (with_capability ? 1 : 0)) return std::nullopt;
          const Number index = row.number(0);
          if (!index) return std::nullopt;
          Gpu gpu{*index, row.text(1), row.text(2), row.text(3), {}, {}, {}, {}, {}, {}, {}, {}};
          gpu.memory_bytes = derived<std::uint64_t>(
              row.number(4), [](std::uint64_t mebi) { return std::optional(mebi * kBytesPerMib); });
          gpu.mig = row.enabled(5);
          gpu.ecc = row.enabled(6);
          gpu.persistence = row.enabled(7);
          gpu.pcie_generation = row.number(8);
          gpu.pcie_lanes = row.number(9);
          gpu.compute_capability = with_capability
                                       ? row.text(kFieldCount)
                                       : unknown<std::string>("this nvidia-smi does not tell");
          gpu.nvlinks = unknown<std::uint64_t>("nvidia-smi's table does not say");
          gpus.push_back(std::move(gpu));
        }
        return gpus;
      });
}

Fact<std::vector<GpuPath>> paths_of_matrix(const Text& matrix) {
  return derived<std::vector<GpuPath>>(
      matrix, [](const std::string& text) -> std::optional<std::vector<GpuPath>> {
        std::vector<GpuPath> paths;
        for (const std::string_view line : split(text, '\n')) {
          // The heading is underlined by an escape sequence; a row is `GPU0  X  NV12  SYS …`.
          const auto words = words_of(line);
          if (words.size() < 2 || !words[0].starts_with("GPU")) continue;
          const auto from = number_of(words[0].substr(3));
          if (!from || words[1].starts_with("GPU")) continue;
          for (std::uint64_t to = *from + 1; to + 1 < words.size(); ++to) {
            const std::string_view path = words[to + 1];
            const bool is_path = path.starts_with("NV") || path == "PIX" || path == "PXB" ||
                                 path == "PHB" || path == "NODE" || path == "SYS";
            if (!is_path) break;
            paths.push_back({*from, to, known(std::string(path), "nvidia-smi topo -m")});
          }
        }
        return paths;
      });
}

/// It tells which GPUs are split, and of their parts no more than names.
Fact<std::vector<MigDevice>> parts_of(const Fact<std::vector<Gpu>>& gpus) {
  using Parts = std::vector<MigDevice>;
  if (!gpus) return unknown<Parts>(gpus.source);
  const bool none = std::all_of(gpus->begin(), gpus->end(),
                                [](const Gpu& one) { return one.mig.value == false; });
  return none ? known(Parts{}, gpus.source) : unknown<Parts>("nvidia-smi's table does not say");
}

GpuAnswers ask_nvidia_smi(const FactSources& from) {
  GpuAnswers answers;
  Text csv = query(from, std::string(kQueryFields) + ",compute_cap");
  // Drivers before 510 do not know that field.
  const bool with_capability = csv || csv.source.find("compute_cap\" is not") == std::string::npos;
  if (!with_capability) csv = query(from, std::string(kQueryFields));
  answers.gpus = gpus_of_csv(csv, with_capability);
  answers.mig_devices = parts_of(answers.gpus);
  if (!csv) {
    answers.user_driver = library_version(csv.source);
    answers.cuda_version = unknown<std::string>(csv.source);
    answers.paths = unknown<std::vector<GpuPath>>(csv.source);
    return answers;
  }
  answers.user_driver = derived<std::string>(query(from, "driver_version"), driver_version);
  answers.cuda_version = derived<std::string>(from.ask({"nvidia-smi"}), cuda_of_frame);
  answers.paths = answers.gpus && answers.gpus->size() < 2
                      ? known(std::vector<GpuPath>{}, "nvidia-smi")
                      : paths_of_matrix(from.ask({"nvidia-smi", "topo", "-m"}));
  // All GPUs of a column beyond the matrix's own are NICs.
  if (answers.paths && answers.gpus) {
    std::erase_if(*answers.paths.value,
                  [&](const GpuPath& path) { return path.to >= answers.gpus->size(); });
  }
  return answers;
}

}  // namespace mlenv
