#include "images/inspect/inspect.hpp"

#include <elf.h>
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/paths.hpp"
#include "base/pool.hpp"
#include "base/printable.hpp"
#include "base/record_json.hpp"
#include "base/text.hpp"
#include "images/inspect/image_tree.hpp"
#include "images/inspect/linkage.hpp"
#include "images/inspect/linkage_facts.hpp"
#include "images/inspect/software.hpp"
#include "images/inspect/waste.hpp"

namespace mlenv {
namespace {

constexpr const char* kFiles = "the image's files";
constexpr const char* kPackages = "names of files and packages";
constexpr const char* kElf = "its ELF files";
constexpr const char* kConfig = "its configuration";

struct ElfMachine {
  std::string_view architecture;
  std::uint64_t number;
};
constexpr std::array<ElfMachine, 7> kMachines = {{{"amd64", EM_X86_64},
                                                  {"arm64", EM_AARCH64},
                                                  {"386", EM_386},
                                                  {"arm", EM_ARM},
                                                  {"ppc64le", EM_PPC64},
                                                  {"s390x", EM_S390},
                                                  {"riscv64", EM_RISCV}}};

std::uint64_t machine_of(std::string_view architecture) {
  for (const ElfMachine& one : kMachines) {
    if (one.architecture == architecture) return one.number;
  }
  return EM_NONE;
}

/// The last of several of one name holds, as in the kernel's and the shell's eyes.
std::vector<Variable> environment_of(const ImageConfig& config) {
  std::map<std::string, std::string> all;
  for (const std::string& entry : config.env) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = entry.substr(0, equals);
    if (is_heeded_variable(name)) all[name] = entry.substr(equals + 1);
  }
  std::vector<Variable> list;
  for (auto& [name, value] : all) list.push_back({name, std::move(value)});
  return list;
}

std::string library_path(const std::vector<Variable>& environment) {
  for (const Variable& one : environment) {
    if (one.name == "LD_LIBRARY_PATH") return one.value;
  }
  return {};
}

std::vector<DeviceLibrary> device_libraries(const ImageTree& tree) {
  std::vector<DeviceLibrary> found;
  for (const auto& [path, node] : tree.nodes()) {
    if (node.elf == nullptr || node.elf->device_code.empty()) continue;
    if (node.entry->kind != "file") continue;
    found.push_back({"/" + path, node.elf->device_code, !is_nvidia_library("/" + path)});
  }
  // What else a framework ships, and what comes on top of it (one file for each CUDA release,
  // kernels for some GPUs alone), is not asked of every GPU.
  const bool has_framework = std::any_of(
      found.begin(), found.end(), [](const auto& one) { return is_framework_kernels(one.path); });
  for (DeviceLibrary& one : found) {
    if (has_framework) one.decides = is_framework_kernels(one.path);
  }
  return found;
}

std::vector<std::string> texts_of(const nlohmann::json& list) {
  std::vector<std::string> texts;
  if (!list.is_array()) return texts;
  for (const nlohmann::json& one : list) {
    texts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  }
  return texts;
}

std::vector<ForwardCompatibility> forward_compatibility_of(const ImageTree& tree,
                                                           std::string_view library_path) {
  std::vector<ForwardCompatibility> found;
  for (const auto& [path, node] : tree.nodes()) {
    if (node.elf == nullptr || node.elf->forward_compatibility.empty()) continue;
    const nlohmann::json note =
        nlohmann::json::parse(node.elf->forward_compatibility, nullptr, /*allow_exceptions=*/false);
    if (node.entry->kind != "file" || !note.is_object()) continue;
    ForwardCompatibility one;
    one.path = "/" + path;
    const auto version = note.find("CUDA Version");
    if (version != note.end()) {
      one.cuda_version = version->is_string() ? version->get<std::string>() : version->dump();
    }
    if (note.contains("Driver")) one.drivers = texts_of(note["Driver"]);
    if (note.contains("Device")) one.devices = texts_of(note["Device"]);
    one.in_library_path = Linker{tree, library_path}.is_in_library_path(path, "libcuda.so.1");
    found.push_back(std::move(one));
  }
  return found;
}

Fact<std::vector<std::string>> user_ids_of(const ImageTree& tree) {
  const ImageTree::Node* passwd = tree.find("etc/passwd");
  if (passwd == nullptr || passwd->text == nullptr)
    return known(std::vector<std::string>{}, "no /etc/passwd");
  std::set<std::string> ids;
  for (const std::string_view line : split(*passwd->text, '\n')) {
    const auto parts = split(line, ':');
    if (parts.size() >= 4 && !parts[2].empty()) ids.emplace(parts[2]);
  }
  return known(std::vector<std::string>(ids.begin(), ids.end()), "/etc/passwd");
}

void take_config(const ImageConfig& config, ImageFacts& facts) {
  facts.architecture = config.architecture;
  facts.environment = environment_of(config);
  facts.user = known(config.user, kConfig);
  const auto label = [&](const char* name) -> const std::string* {
    const auto found = config.labels.find(name);
    return found == config.labels.end() ? nullptr : &found->second;
  };
  const std::string* driver = label("dev.mlenv.min-driver");
  facts.oldest_driver = driver == nullptr ? unknown<std::string>("no label dev.mlenv.min-driver")
                                          : known(*driver, "label dev.mlenv.min-driver");
  std::vector<std::string> gpus;
  if (const std::string* text = label("dev.mlenv.sm")) {
    for (const std::string_view gpu : split(*text, ' ')) gpus.emplace_back(gpu);
  } else if (label("dev.mlenv.lock") == nullptr) {
    facts.gpus = unknown<std::vector<std::string>>("no label dev.mlenv.sm");
    return;
  }
  facts.gpus = known(std::move(gpus), "label dev.mlenv.sm");
}

/// Once the configuration is taken.
void take_tree(const ImageTree& tree, ImageFacts& facts) {
  const std::uint64_t machine = machine_of(facts.architecture);
  const std::vector<PythonPackage> packages = python_packages(tree);
  facts.cuda_runtimes =
      known(libraries_in(tree, packages, "libcudart", "nvidia-cuda-runtime"), kPackages);
  facts.cudnn = known(libraries_in(tree, packages, "libcudnn", "nvidia-cudnn"), kPackages);
  facts.nccl = known(libraries_in(tree, packages, "libnccl", "nvidia-nccl"), kPackages);
  facts.frameworks = known(frameworks_in(tree, packages), "its Python packages");
  facts.device_code = known(device_libraries(tree), "fat binaries in its ELF files");
  facts.forward_compatibility =
      known(forward_compatibility_of(tree, library_path(facts.environment)),
            "ELF notes .note.cuda.fwd_compatibility");
  facts.cpu = known(cpu_needs_of(tree, machine, packages), "its packages and ELF properties");
  facts.unpacked_bytes = known(tree.all_bytes(), kFiles);
  facts.waste = known(waste_in(tree), kFiles);
  facts.user_ids = user_ids_of(tree);
  take_linkage(tree, machine, library_path(facts.environment), kElf, facts);
}

/// Paths and names are anybody's bytes: as text they are UTF-8, and harmless to a terminal.
struct Cleaner {
  void clean(std::string& text) const { text = printable(text); }
  template <class T>
  void clean(std::vector<T>& list) const {
    for (T& item : list) clean(item);
  }
  template <class T>
  void clean(std::optional<T>& value) const {
    if (value) clean(*value);
  }
  template <class T>
  void clean(Fact<T>& fact) const {
    clean(fact.value);
  }
  template <class T>
  void clean(T& value) const {
    if constexpr (requires { T::fields(value, [](const char*, auto&) {}); }) {
      T::fields(value, [this](const char*, auto& field) { this->clean(field); });
    }
  }
};

std::uint64_t packed_bytes(const Image& image) {
  std::map<Digest, std::uint64_t> sizes;
  for (const Layer& layer : image.layers) sizes.emplace(layer.blob.digest, layer.blob.size_bytes);
  std::uint64_t bytes = 0;
  for (const auto& [digest, size] : sizes) bytes += size;
  return bytes;
}

Digest facts_key(const Image& image) {
  return Digest::of("mlenv.image-facts/1.7\n" + image.digest().str());
}

/// Kept apart from the other facts: who gathers those at the same time does not undo it.
Digest imports_key(const Image& image) {
  return Digest::of("mlenv.image-imports/1\n" + image.digest().str());
}

struct TriedImports {
  std::vector<FailedImport> failed;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("failed", self.failed);
  }
};
constexpr RecordKind kTriedImports = {"mlenv.image-imports/1", "imports of an image", ""};

void take_imports(const Store& store, const Image& image, ImageFacts& facts) {
  const auto text = store.find_key(imports_key(image));
  if (!text) return;
  try {
    facts.failed_imports =
        known(read_record<TriedImports>(*text, "remembered imports", kTriedImports).failed,
              "each was imported once");
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): another version's, unknown
  }
}

ImageFacts gather(Store& store, const Image& image, Progress& progress) {
  ImageFacts facts;
  facts.packed_bytes = known(packed_bytes(image), "its manifest");
  facts.kind = "image";
  facts.digest = image.digest().str();
  take_config(image.settings, facts);
  take_tree(ImageTree{facts_of_layers(store, image, progress)}, facts);
  Cleaner{}.clean(facts);
  return facts;
}

}  // namespace

std::vector<LayerFacts> facts_of_layers(Store& store, const Image& image, Progress& progress) {
  std::vector<LayerFacts> layers(image.layers.size());
  // The largest first: what is left at the end is small.
  std::vector<std::size_t> order(layers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return image.layers[a].blob.size_bytes > image.layers[b].blob.size_bytes;
  });
  Pool pool;
  pool.for_each(order.size(), [&](std::size_t i) {
    layers[order[i]] = layer_facts(store, image.layers[order[i]], progress);
  });
  return layers;
}

std::optional<ImageFacts> remembered_image_facts(const Store& store, const Image& image) {
  const auto text = store.find_key(facts_key(image));
  if (!text) return std::nullopt;
  try {
    ImageFacts facts = read_image_facts(*text, "remembered facts");
    take_imports(store, image, facts);
    return facts;
  } catch (const Error&) {  // another version's: made anew
    return std::nullopt;
  }
}

ImageFacts image_facts(Store& store, const Image& image, Progress& progress) {
  if (auto remembered = remembered_image_facts(store, image)) return std::move(*remembered);
  ImageFacts facts = gather(store, image, progress);
  store.put_key(facts_key(image), render_image_facts(facts));
  take_imports(store, image, facts);
  return facts;
}

void remember_imports(Store& store, const Image& image, std::vector<FailedImport> failed) {
  store.put_key(imports_key(image), render_record(TriedImports{std::move(failed)}, kTriedImports));
}

std::uint64_t bytes_to_unpack(Store& store, const Image& image, Progress& progress) {
  std::set<Digest> counted;
  std::uint64_t bytes = 0;
  for (const Layer& layer : image.layers) {
    if (!counted.insert(layer.diff_id).second || store.find_tree(layer.diff_id)) continue;
    for (const LayerEntry& entry : layer_facts(store, layer, progress).entries) {
      if (entry.kind == "file") bytes += entry.bytes;
    }
  }
  return bytes;
}

}  // namespace mlenv
