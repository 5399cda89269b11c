#include "runner/engine/engine_image.hpp"

#include <algorithm>
#include <array>
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/tar.hpp"
#include "base/text.hpp"
#include "images/archive.hpp"
#include "runner/runtime_variables.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

constexpr std::chrono::hours kLongestLoad{2};
constexpr std::string_view kRepository = "localhost/mlenv";

/// `type` in the OCI's words, as Docker has others.
std::string plain_type(std::string_view type) {
  std::string plain{kLayerGzipType.substr(0, kLayerGzipType.rfind('+'))};
  if (type.ends_with("gzip")) plain += "+gzip";
  if (type.ends_with("zstd")) plain += "+zstd";
  return plain;
}

bool is_nothing(const json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().empty() : value.empty();
}

/// Nothing that an engine, its hooks or its runtime heed of an image.
bool is_bare(const json& shown) {
  const auto says_nothing = [](const json& in, const char* name) {
    const auto found = in.find(name);
    return found == in.end() || is_nothing(*found);
  };
  if (!says_nothing(shown, "Annotations")) return false;
  const auto config = shown.find("Config");
  if (config == shown.end() || config->is_null()) return true;
  constexpr std::array kHeeded{"Env",        "Labels",       "Volumes", "Healthcheck",
                               "StopSignal", "ExposedPorts", "OnBuild"};
  return config->is_object() && std::all_of(kHeeded.begin(), kHeeded.end(), [&](const char* one) {
           return says_nothing(*config, one);
         });
}

/// The layers by their tars' digests, which both engines count alike, whatever they call an image.
bool has_image(const ContainerEngine& engine, const std::string& name,
               const std::vector<Layer>& layers) {
  const Captured answer = ask(engine, {"image", "inspect", name}, kEngineAnswer);
  const json all = json::parse(answer.out, nullptr, false);
  if (answer.exit.code != 0 || !all.is_array() || all.size() != 1) return false;
  const json& shown = all.front();
  if (!shown.is_object()) return false;
  const auto root = shown.find("RootFS");
  if (root == shown.end() || !root->is_object() || !root->contains("Layers")) return false;
  json wanted = json::array();
  for (const Layer& layer : layers) wanted.push_back(layer.diff_id.str());
  return root->at("Layers") == wanted && is_bare(shown);
}

Error not_taken(const ContainerEngine& engine, const std::string& words) {
  Error error = failure("engine-image", "{} does not take the image", engine.name);
  const std::string_view text = trim(words);
  const std::size_t last = text.rfind('\n');
  error.because(std::string(last == std::string_view::npos ? text : text.substr(last + 1)));
  if (words.find("no space left") != std::string::npos) {
    return std::move(error).hint(fmt::format(
        "make room where {} keeps its images: `{} system prune`", engine.name, engine.name));
  }
  if (words.find("subuid") != std::string::npos || words.find("lchown") != std::string::npos) {
    return std::move(error).hint(
        "let root give this user more ids: `usermod --add-subuids 100000-165535 "
        "--add-subgids 100000-165535 USER`, then `podman system migrate`");
  }
  return error;
}

/// A reader that is gone is an error to us, not our end.
class NoPipeSignal {
 public:
  NoPipeSignal() { before_ = std::signal(SIGPIPE, SIG_IGN); }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() { (void)std::signal(SIGPIPE, before_); }

 private:
  void (*before_)(int) = SIG_DFL;
};

/// Docker reads its archive as it is written.
void load_into_docker(const Store& store, const Image& image, const Reference& name,
                      const ContainerEngine& engine, Progress& progress) {
  const TemporaryFolder scratch = store.scratch();
  const fs::path words = scratch.path() / "words";
  const Fd messages = open_file(words, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Pipe pipe = make_pipe();
  Command command{Purpose{"engine-load"}};
  command.env = runtime_variables(Starts::engine);
  command.argv = {engine.program, "load", "--quiet"};
  command.stdin_fd = pipe.read_end.get();
  command.stdout_fd = messages.get();
  command.stderr_fd = messages.get();
  Child loader{command};
  pipe.read_end.reset();
  const NoPipeSignal no_signal;
  try {
    write_output(store, image, name,
                 {Output::Format::docker_archive, fmt::format("/dev/fd/{}", pipe.write_end.get())},
                 progress);
  } catch (const Error&) {
    pipe.write_end.reset();
    const std::optional<Exit> exit = loader.wait(kEngineAnswer);
    if (exit && exit->code != 0) throw not_taken(engine, read_file(words));
    throw;
  }
  pipe.write_end.reset();
  const std::optional<Exit> exit = loader.wait(kLongestLoad);
  if (!exit || exit->code != 0) throw not_taken(engine, read_file(words));
}

/// Podman takes a layout of blobs, of which it reads those that it does not have.
void load_into_podman(const Store& store, const Image& image, const Reference& name,
                      const ContainerEngine& engine, Progress& progress) {
  const TemporaryFolder scratch = store.scratch();
  constexpr const char* kLayout = "mlenv";  // it becomes a name in podman: `localhost/mlenv`
  // What lies whole in the store need not be copied.
  const fs::path blobs = scratch.path() / kLayout / "blobs" / "sha256";
  make_folders(blobs);
  write_file(scratch.path() / kLayout / "oci-layout", "",
             /*durable=*/false);  // filled by the writer
  write_file(blobs / image.layers.back().blob.digest.hex(), device_folder_tar(), /*durable=*/false);
  for (const Layer& layer : image.layers) {
    const std::optional<fs::path> whole = store.path_of(layer.blob.digest);
    if (whole) fs::create_symlink(fs::absolute(*whole), blobs / layer.blob.digest.hex());
  }
  write_output(store, image, name, {Output::Format::oci, scratch.path() / kLayout}, progress);
  const Captured pulled =
      ask(engine, {"pull", "--quiet", std::string("oci:") + kLayout}, kLongestLoad, scratch.path());
  if (pulled.exit.code != 0) throw not_taken(engine, pulled.err);
  const std::string id{trim(pulled.out)};
  const Captured tagged = ask(engine, {"tag", id, engine.image}, kEngineAnswer);
  if (tagged.exit.code != 0) throw not_taken(engine, tagged.err);
}

}  // namespace

std::string engine_image_name(const Digest& manifest) {
  return fmt::format("{}:{}", kRepository, manifest.hex());
}

std::string device_folder_tar() {
  TarEntry folder;
  folder.path = "dev";
  folder.type = TarEntry::Type::folder;
  folder.mode = 0755;
  return std::string{as_text(tar_header(folder))} + std::string{as_text(tar_end())};
}

Image bare_image(const Image& image, Over over) {
  ImageConfig config;
  config.architecture = image.settings.architecture;
  config.variant = image.settings.variant;
  config.os = image.settings.os;
  std::vector<Layer> layers = image.layers;
  for (Layer& one : layers) {
    one.title.clear();
    one.blob.media_type = plain_type(one.blob.media_type);
  }
  if (over == Over::device_folder) {
    const std::string tar = device_folder_tar();
    const Digest digest = Digest::of(tar);
    layers.push_back({{plain_type(""), digest, tar.size()}, digest, tar.size(), ""});
  }
  return compose_image(config, layers, 0);
}

void bring_image(const Store& store, const Image& image, ContainerEngine& engine,
                 Progress& progress) {
  engine.image = engine_image_name(image.digest());
  const Image bare = bare_image(image, engine.is_podman() ? Over::device_folder : Over::nothing);
  if (has_image(engine, engine.image, bare.layers)) return;
  log::debug("{} gets the image {}", engine.name, engine.image);
  const Reference name = Reference::parse(engine.image);
  while_doing(fmt::format("handing the image to {}", engine.name), [&] {
    engine.is_podman() ? load_into_podman(store, bare, name, engine, progress)
                       : load_into_docker(store, bare, name, engine, progress);
    if (has_image(engine, engine.image, bare.layers)) return;
    throw failure("engine-image", "{} has another image than the one that it got", engine.name);
  });
}

}  // namespace mlenv
