#include "cli/run_devices.hpp"

#include <algorithm>
#include <array>

#include "cli/host_memory.hpp"
#include "cli/settings.hpp"
#include "images/inspect/inspect.hpp"
#include "runner/cdi/host_registry.hpp"

namespace mlenv::cli {
namespace {

/// The last word on it; nullopt: it is not set.
std::optional<std::string> value_of(const ImageConfig& image, std::string_view name) {
  for (auto one = image.env.rbegin(); one != image.env.rend(); ++one) {
    if (one->size() > name.size() && one->starts_with(name) && (*one)[name.size()] == '=') {
      return one->substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

}  // namespace

DeviceChoice parse_devices(const DeviceWords& words) {
  DeviceChoice choice{parse_gpus(words.gpus), {}};
  for (const std::string& word : words.devices) {
    const auto name = parse_cdi_name(word);
    if (!name) {
      throw usage_error("usage", "`--device {}` names no CDI device", word)
          .hint("write `VENDOR/CLASS=NAME`; a file of the host is given by `-v FILE:FILE`");
    }
    choice.devices.push_back(*name);
  }
  return choice;
}

std::optional<bool> wants_gpus(const ImageConfig& image) {
  if (const auto visible = value_of(image, "NVIDIA_VISIBLE_DEVICES")) {
    return !visible->empty() && *visible != "none" && *visible != "void";
  }
  constexpr std::array<std::string_view, 2> kSigns = {"NVIDIA_REQUIRE_CUDA", "CUDA_VERSION"};
  if (image.labels.contains("dev.mlenv.cuda")) return true;
  const bool has_sign = std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view name) {
    return value_of(image, name).has_value();
  });
  if (has_sign) return true;
  if (image.labels.contains("dev.mlenv.lock")) return false;  // made here, without CUDA
  return std::nullopt;
}

bool takes_gpus(Ui& ui, const Image& image, const GpuChoice& choice) {
  if (choice.kind != GpuChoice::Kind::automatic) return choice.kind != GpuChoice::Kind::none;
  if (!has_nvidia_driver()) return false;
  if (const auto said = wants_gpus(image.settings)) return *said;
  const ImageFacts facts = image_facts(ui.store(), image, ui.progress());
  if (facts.cuda_runtimes && !facts.cuda_runtimes->empty()) return true;
  return facts.frameworks && std::any_of(facts.frameworks->begin(), facts.frameworks->end(),
                                         [](const FrameworkBuild& build) {
                                           return !build.cuda.empty() && build.cuda != "cpu";
                                         });
}

std::vector<CdiName> gpus_to_divide(const GpuChoice& choice) {
  if (choice.kind == GpuChoice::Kind::named) return choice.devices;
  CdiRegistry registry{cdi_folders()};
  add_nvidia(registry, cache_folder(), split_gpus);
  if (!registry.has(kNvidiaGpu)) return {};  // what the run asks for says why
  return separate_gpus(registry);
}

ChosenDevices devices_for(const DeviceChoice& choice, bool with_gpus) {
  const bool is_automatic = choice.gpus.kind == GpuChoice::Kind::automatic;
  if (!with_gpus && choice.devices.empty()) return {};
  CdiRegistry registry{cdi_folders()};
  std::vector<CdiName> wanted = choice.devices;
  try {
    if (with_gpus) {
      add_nvidia(registry, cache_folder(), split_gpus);
      const std::vector<CdiName> gpus = chosen_gpus(choice.gpus, registry);
      wanted.insert(wanted.begin(), gpus.begin(), gpus.end());
    }
    return {registry.edits(wanted), wanted};
  } catch (Error& error) {
    if (is_automatic && with_gpus) {
      error.while_doing("giving the container this host's GPUs (`--gpus none` runs without)");
    }
    throw;
  }
}

}  // namespace mlenv::cli
