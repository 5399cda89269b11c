#include "runner/facts/nvidia.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>

#include "base/error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "recipes/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

using NameList = std::vector<std::string>;
constexpr std::string_view kFactsReexec = "__facts";
constexpr const char* kVersionFile = "/proc/driver/nvidia/version";

/// Takes what is still unknown from the next that was asked; reasons are kept beside each other.
template <class T>
void fill_unknown(Fact<T>& into, const Fact<T>& other) {
  if (into) return;
  if (other) {
    into = other;
  } else if (!other.source.empty() && into.source != other.source) {
    into.source += (into.source.empty() ? "" : "; ") + other.source;
  }
}

void fill_unknown(GpuAnswers& into, const GpuAnswers& other) {
  fill_unknown(into.user_driver, other.user_driver);
  fill_unknown(into.cuda_version, other.cuda_version);
  fill_unknown(into.cuda_status, other.cuda_status);
  fill_unknown(into.dma_buf, other.dma_buf);
  fill_unknown(into.gpus, other.gpus);
  fill_unknown(into.paths, other.paths);
  fill_unknown(into.mig_devices, other.mig_devices);
}

Facts as_facts(const GpuAnswers& answers) {
  Facts facts;
  facts.nvidia.user_driver = answers.user_driver;
  facts.nvidia.cuda_version = answers.cuda_version;
  facts.nvidia.cuda_status = answers.cuda_status;
  facts.nvidia.dma_buf = answers.dma_buf;
  facts.gpus = answers.gpus;
  facts.gpu_paths = answers.paths;
  facts.mig_devices = answers.mig_devices;
  return facts;
}

/// In a process that is killed when a sick driver holds it.
GpuAnswers asked_aside(const FactSources& from, const std::string& library) {
  return answers_of(from.ask({own_executable().string(), std::string(kFactsReexec), library}),
                    library);
}

/// The kernel module's own list.
Fact<std::vector<Gpu>> gpus_of_proc(const FactSources& from) {
  const fs::path folder = "/proc/driver/nvidia/gpus";
  return derived<std::vector<Gpu>>(names_in(from, folder), [&](const NameList& addresses) {
    std::vector<Gpu> gpus;
    for (const std::string& address : addresses) {
      const Text text = file_text(from, folder / address / "information");
      Gpu gpu;
      Gpu::fields(gpu, [](const char*, auto& field) {
        if constexpr (requires { field.source; }) field.source = "the kernel module does not say";
      });
      gpu.index = gpus.size();
      gpu.name = named_value(text, "Model", ':');
      gpu.uuid = named_value(text, "GPU UUID", ':');
      gpu.pci_address = known(address, folder.string());
      gpus.push_back(std::move(gpu));
    }
    return std::optional(gpus);
  });
}

/// Bus addresses of NVIDIA's devices of a class, which is given by its beginning (pci.ids: `0x03`
/// display controllers, 3D ones among them).
Texts pci_devices(const FactSources& from, std::string_view wanted) {
  const fs::path folder = "/sys/bus/pci/devices";
  return derived<NameList>(names_in(from, folder), [&](const NameList& addresses) {
    NameList found;
    for (const std::string& address : addresses) {
      const Text vendor = file_text(from, folder / address / "vendor");
      const Text kind = file_text(from, folder / address / "class");
      if (vendor && *vendor == "0x10de" && kind && kind->starts_with(wanted)) {
        found.push_back(address);
      }
    }
    return std::optional(found);
  });
}

/// Whether asking NVIDIA's libraries and programs makes sense.
bool has_signs(const FactSources& from, const NvidiaFacts& facts) {
  return (facts.kernel_driver && *facts.kernel_driver != "none") || !facts.pci_devices ||
         !facts.pci_devices->empty() || present(from, "/dev/nvidiactl") ||
         present(from, "/dev/dxg");
}

Truth open_module(const FactSources& from, const Text& driver) {
  const Text version = file_text(from, kVersionFile);
  if (version) {
    return known(version->find("Open Kernel Module") != std::string::npos, version.source);
  }
  if (driver && *driver == "none") return unknown<bool>("no module is loaded");
  return unknown<bool>(version.source);
}

Truth loaded(const FactSources& from, const NameList& modules) {
  for (const std::string& name : modules) {
    const std::string path = "/sys/module/" + name;
    if (present(from, path)) return known(true, path);
  }
  return present(from, "/sys/module") ? known(false, "/sys/module")
                                      : unknown<bool>("/sys/module is absent");
}

Truth device_nodes(const FactSources& from) {
  if (present(from, "/dev/dxg")) return known(true, "/dev/dxg");
  if (!present(from, "/dev")) return unknown<bool>("/dev is absent");
  return known(present(from, "/dev/nvidiactl") && present(from, "/dev/nvidia-uvm"), "/dev");
}

Truth running(const Texts& programs, std::string_view name) {
  return derived<bool>(programs, [&](const NameList& names) {
    return std::optional(std::binary_search(names.begin(), names.end(), name));
  });
}

Truth mismatch(const NvidiaFacts& facts) {
  if (!facts.kernel_driver) return unknown<bool>(facts.kernel_driver.source);
  if (*facts.kernel_driver == "none") return unknown<bool>("no module is loaded");
  if (!facts.user_driver) return unknown<bool>(facts.user_driver.source);
  // nvidia-smi tells its library's as `550.54` where the module is `550.54.14`.
  const std::string& kernel = *facts.kernel_driver;
  const std::string& user = *facts.user_driver;
  const bool same = kernel == user || kernel.starts_with(user + ".");
  return known(!same, "kernel_driver and user_driver");
}

/// The driver lists those that it drives; otherwise the PCI bus tells, if it can be seen.
Truth nvswitch(const FactSources& from) {
  const Texts devices = names_in(from, "/proc/driver/nvidia-nvswitch/devices");
  if (devices && !devices->empty()) return known(true, devices.source);
  constexpr std::string_view kOtherBridge = "0x0680";
  return derived<bool>(pci_devices(from, kOtherBridge),
                       [](const NameList& found) { return std::optional(!found.empty()); });
}

}  // namespace

GpuAnswers no_answers(const std::string& why) {
  return {unknown<std::string>(why),           unknown<std::string>(why),
          unknown<std::uint64_t>(why),         unknown<bool>(why),
          unknown<std::vector<Gpu>>(why),      unknown<std::vector<GpuPath>>(why),
          unknown<std::vector<MigDevice>>(why)};
}

std::string cuda_version(int version) {
  constexpr int kMajor = 1000;
  constexpr int kMinor = 10;
  return fmt::format("{}.{}", version / kMajor, version % kMajor / kMinor);
}

GpuAnswers answers_of(const Text& answer, const std::string& library) {
  if (!answer) return no_answers(answer.source);
  try {
    Facts facts = read_facts(*answer, library);
    return {std::move(facts.nvidia.user_driver),
            std::move(facts.nvidia.cuda_version),
            std::move(facts.nvidia.cuda_status),
            std::move(facts.nvidia.dma_buf),
            std::move(facts.gpus),
            std::move(facts.gpu_paths),
            std::move(facts.mig_devices)};
  } catch (const Error& error) {
    return no_answers(fmt::format("{} gave no answer: {}", library, error.what()));
  }
}

std::optional<std::string> driver_version(std::string_view text) {
  for (const std::string_view word : words_of(text)) {
    const bool numbers = word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (word.find('.') == 3 && numbers && !word.ends_with('.')) return std::string(word);
  }
  return std::nullopt;
}

Text probe_kernel_driver(const FactSources& from) {
  Text line = file_text(from, kVersionFile);
  if (line) line.value = line.value->substr(0, line.value->find('\n'));
  Text version = derived<std::string>(line, driver_version);
  if (version) return version;
  const Text module = file_text(from, "/sys/module/nvidia/version");
  if (Text found = derived<std::string>(module, driver_version)) return found;
  const bool seen = present(from, "/proc/driver") && present(from, "/sys/module");
  if (!line && seen && !present(from, "/sys/module/nvidia") && !present(from, "/dev/dxg")) {
    return known<std::string>("none", "/proc/driver, /sys/module");
  }
  if (present(from, "/dev/dxg"))
    return unknown<std::string>("WSL: the kernel part is Windows' own");
  return unknown<std::string>(version.source + "; " + module.source);
}

void probe_nvidia(const FactSources& from, Facts& into) {
  NvidiaFacts& facts = into.nvidia;
  facts.kernel_driver = probe_kernel_driver(from);
  facts.pci_devices = pci_devices(from, "0x03");
  facts.open_module = open_module(from, facts.kernel_driver);
  facts.device_nodes = device_nodes(from);
  facts.nvswitch = nvswitch(from);
  const Texts programs = running_programs(from);
  facts.fabric_manager = running(programs, "nv-fabricmanage");  // 15 bytes of it
  facts.persistence_daemon = running(programs, "nvidia-persiste");
  facts.peermem = loaded(from, {"nvidia_peermem", "nv_peer_mem"});

  GpuAnswers answers;
  if (!has_signs(from, facts)) {
    const std::string why = "not asked: nothing of NVIDIA's is here";
    answers = {unknown<std::string>(why),
               unknown<std::string>(why),
               unknown<std::uint64_t>(why),
               unknown<bool>(why),
               known(std::vector<Gpu>{}, facts.pci_devices.source),
               known(std::vector<GpuPath>{}, facts.pci_devices.source),
               known(std::vector<MigDevice>{}, facts.pci_devices.source)};
  } else {
    if (from.live()) {
      answers = asked_aside(from, "nvml");
      fill_unknown(answers, asked_aside(from, "cuda"));
    }
    if (!answers.gpus || !answers.cuda_version) fill_unknown(answers, ask_nvidia_smi(from));
    fill_unknown(answers.gpus, gpus_of_proc(from));
    if (!from.live()) {
      fill_unknown(answers.cuda_status, unknown<std::uint64_t>("not recorded"));
      fill_unknown(answers.dma_buf, unknown<bool>("not recorded"));
      fill_unknown(answers.mig_devices, unknown<std::vector<MigDevice>>("not recorded"));
    }
  }
  facts.user_driver = answers.user_driver;
  facts.cuda_version = answers.cuda_version;
  facts.cuda_status = answers.cuda_status;
  facts.dma_buf = answers.dma_buf;
  into.gpus = answers.gpus;
  into.gpu_paths = answers.paths;
  into.mig_devices = answers.mig_devices;
  facts.mismatch = mismatch(facts);
}

std::optional<int> facts_main(int argc, char** argv) {
  if (argc != 3 || argv[1] != kFactsReexec) return std::nullopt;
  const std::string_view library = argv[2];
  // The libraries, and what they load, may print: that goes to stderr, the answer alone to stdout.
  const Fd answer{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  if (!answer || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
  const GpuAnswers answers = library == "cuda" ? ask_cuda() : ask_nvml();
  write_all(answer.get(), as_bytes(render_facts(as_facts(answers))));
  return 0;
}

}  // namespace mlenv
