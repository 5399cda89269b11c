#include "runner/cdi/gpus.hpp"

#include <algorithm>
#include <charconv>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kAllGpus = "all";

Error bad_gpus(std::string_view word, std::string why) {
  return usage_error("usage", "`--gpus {}`: {}", word, std::move(why))
      .hint("write `all`, `none`, how many (`2`), or which: `device=0,2`, `GPU-UUID`");
}

bool is_uuid(std::string_view word) { return word.starts_with("GPU-") || word.starts_with("MIG-"); }

GpuChoice counted_gpus(std::string_view word) {
  GpuChoice choice;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, choice.count);
  if (error != std::errc{} || rest != end) throw bad_gpus(word, "that is no number of GPUs");
  choice.kind = choice.count == 0 ? GpuChoice::Kind::none : GpuChoice::Kind::count;
  return choice;
}

CdiName named_gpu(std::string_view word, std::string_view part, bool by_index) {
  if (const auto name = parse_cdi_name(part)) return *name;
  const auto name = parse_cdi_name(fmt::format("{}={}", kNvidiaGpu, part));
  if (name && (by_index || is_uuid(part))) return *name;
  if (name && all_digits(part)) {
    throw bad_gpus(word,
                   fmt::format("a number alone is how many, and indices are `device={}`", word));
  }
  throw bad_gpus(word, fmt::format("`{}` names no GPU", part));
}

bool is_gpu_index(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789:") == std::string::npos;
}

/// Each GPU once: by index where the specification has indices.
std::vector<std::string> each_once(const std::vector<std::string>& names) {
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found), is_gpu_index);
  if (!found.empty()) return found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [](const std::string& name) { return name != kAllGpus; });
  return found;
}

CdiName nvidia(std::string device) { return {std::string(kNvidiaGpu), std::move(device)}; }

Error no_gpus(const GpuChoice& choice, std::size_t there) {
  if (there == 0) {
    return failure("no-device", "there is no NVIDIA GPU that a container could get")
        .because(
            "no driver runs here, and no CDI specification in /etc/cdi or /var/run/cdi names one")
        .hint("run it without: `--gpus none`; `mlenv facts` tells what this host has");
  }
  return failure("no-device", "{} wanted, and this host has {}", counted(choice.count, "GPU"),
                 there);
}

}  // namespace

GpuChoice parse_gpus(std::string_view word) {
  if (word.empty()) return {};
  if (word == kAllGpus) return {GpuChoice::Kind::all, 0};
  if (word == "none") return {GpuChoice::Kind::none, 0};
  if (all_digits(word)) return counted_gpus(word);
  constexpr std::string_view kDevice = "device=";
  const bool by_index = word.starts_with(kDevice);
  GpuChoice choice{GpuChoice::Kind::named, 0};
  const std::string_view names = by_index ? word.substr(kDevice.size()) : word;
  for (const std::string_view part : split(names, ',')) {
    choice.devices.push_back(named_gpu(word, part, by_index));
  }
  return choice;
}

std::vector<CdiName> chosen_gpus(const GpuChoice& choice, const CdiRegistry& registry) {
  if (choice.kind == GpuChoice::Kind::named) return choice.devices;
  if (choice.kind == GpuChoice::Kind::none) return {};
  const std::vector<std::string> names = registry.names(std::string(kNvidiaGpu));
  if (choice.kind != GpuChoice::Kind::count &&
      std::find(names.begin(), names.end(), kAllGpus) != names.end()) {
    return {nvidia(std::string(kAllGpus))};
  }
  const std::vector<std::string> gpus = each_once(names);
  const std::size_t wanted = choice.kind == GpuChoice::Kind::count ? choice.count : gpus.size();
  if (gpus.empty() || wanted > gpus.size()) throw no_gpus(choice, gpus.size());
  std::vector<CdiName> chosen;
  for (std::size_t i = 0; i < wanted; ++i) chosen.push_back(nvidia(gpus[i]));
  return chosen;
}

std::vector<CdiName> separate_gpus(const CdiRegistry& registry) {
  std::vector<CdiName> all;
  for (std::string& name : each_once(registry.names(std::string(kNvidiaGpu)))) {
    all.push_back(nvidia(std::move(name)));
  }
  return all;
}

bool has_nvidia_driver(const fs::path& root) {
  std::error_code error;
  return fs::exists(root / "dev/nvidiactl", error) || fs::exists(root / "dev/dxg", error);
}

}  // namespace mlenv
