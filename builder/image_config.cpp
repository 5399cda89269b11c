#include "builder/image_config.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "builder/plan.hpp"
#include "recipes/compat/old_tensorflow.hpp"
#include "recipes/platforms.hpp"
#include "recipes/text.hpp"

namespace mlenv {

namespace {

using Variables = std::map<std::string, std::string>;

/// Of locks whose recipe asks for a driver, GPUs or libraries.
void add_demanded(const Lock& lock, std::map<std::string, std::string>& labels, Variables& env) {
  const LockedCuda& cuda = *lock.cuda;
  if (!cuda.cudnn.empty()) labels["dev.mlenv.cudnn"] = cuda.cudnn;
  if (!cuda.nccl.empty()) labels["dev.mlenv.nccl"] = cuda.nccl;
  if (!cuda.architectures.empty()) labels["dev.mlenv.sm"] = join(cuda.architectures, " ");
  const std::vector<std::string>& libraries = lock.request.libraries;
  if (std::find(libraries.begin(), libraries.end(), "nvcc") == libraries.end()) return;
  // Where the packages of CUDA 13 and later put all of the toolkit.
  const std::string home = fmt::format("/opt/venv/lib/python3/site-packages/nvidia/cu{}",
                                       cuda.release.substr(0, cuda.release.find('.')));
  env["CUDA_HOME"] = home;
  env["LIBRARY_PATH"] =
      home + "/lib";  // nvcc has its host compiler look in lib64, which is not there
  env["PATH"] = fmt::format("{}:{}/bin", env["PATH"], home);
}

/// A TensorFlow before 2.14 finds CUDA as any program does (old_tensorflow.hpp).
void add_loader_path(const Lock& lock, Variables& env) {
  const bool old = std::any_of(lock.wheels.begin(), lock.wheels.end(), [](const LockedWheel& one) {
    return one.name == "tensorflow" && is_old_tensorflow(one.version);
  });
  if (!old) return;
  std::vector<std::string> folders;
  for (const LockedWheel& wheel : lock.wheels) {
    const std::string folder = nvidia_library_folder(wheel.name);
    if (!folder.empty()) folders.push_back("/opt/venv/lib/python3/site-packages/" + folder);
  }
  if (folders.empty()) return;
  std::string& path = env["LD_LIBRARY_PATH"];
  if (!path.empty()) folders.push_back(path);
  path = join(folders, ":");
}

constexpr const char* kSystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr const char* kVenvPrograms = "/opt/venv/bin";

Variables variables_of(const ImageConfig* base) {
  Variables env;
  if (base == nullptr) return env;
  for (const std::string& variable : base->env) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    env[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return env;
}

/// The environment's programs come before all others, once.
std::string with_venv(const std::string& path) {
  const std::string first = std::string(kVenvPrograms) + ":";
  return path == kVenvPrograms || path.starts_with(first) ? path : first + path;
}

/// Labels about the base itself would tell untruths about the image on top of it.
void take_labels(const LockedBase& locked, const std::string& name, const ImageConfig& base,
                 ImageConfig& config) {
  for (const auto& [label, value] : base.labels) {
    const bool is_own =
        label.starts_with("org.opencontainers.image.") || label.starts_with("dev.mlenv.");
    if (!is_own) config.labels[label] = value;
  }
  // image-spec annotations.md. The path of an archive is nobody else's business.
  if (!ArchivedImage::parse(name)) config.labels["org.opencontainers.image.base.name"] = name;
  config.labels["org.opencontainers.image.base.digest"] = locked.manifest.str();
}

void add_cuda(const Lock& lock, Variables& env, ImageConfig& config) {
  const LockedCuda& cuda = *lock.cuda;
  // nvidia-container-toolkit, "Environment variables (OCI spec)". The driver floor is what minor
  // version compatibility really asks for; the toolkit's own release would ask for too much.
  env["NVIDIA_VISIBLE_DEVICES"] = "all";
  env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility";
  env["NVIDIA_REQUIRE_CUDA"] = "driver>=" + cuda.min_driver;
  config.labels["dev.mlenv.cuda"] = cuda.release;
  config.labels["dev.mlenv.min-driver"] = cuda.min_driver;
  add_demanded(lock, config.labels, env);
  add_loader_path(lock, env);
}

/// What a container runs, and where.
void take_command(const Lock& lock, const ImageConfig* base, ImageConfig& config) {
  config.command = lock.settings.command;
  config.workdir = lock.settings.workdir;
  if (base != nullptr) {
    config.user = base->user;
    if (config.command.empty()) {
      config.entrypoint = base->entrypoint;
      config.command = base->command;
    }
    if (config.workdir.empty()) config.workdir = base->workdir;
    // A project is mounted at the workdir, and cannot be in the place of everything.
    if (config.workdir.empty() || config.workdir == "/") config.workdir = "/workspace";
  }
  if (config.command.empty() && config.entrypoint.empty()) {
    config.command = {lock.python.empty() ? "/bin/sh" : "python"};
  }
}

}  // namespace

ImageConfig image_config(const Lock& lock, const std::optional<Digest>& files,
                         const ImageConfig* base) {
  Variables env = variables_of(base);
  if (env["PATH"].empty()) env["PATH"] = kSystemPath;
  if (!lock.python.empty()) env["PATH"] = with_venv(env["PATH"]);
  env.emplace("LANG", "C.UTF-8");
  if (!lock.python.empty()) env["VIRTUAL_ENV"] = "/opt/venv";
  ImageConfig config;
  config.architecture = architecture_of(lock.platform);
  // The one that every machine of it has (image-spec image-index.md "Platform Variants").
  if (config.architecture == "arm64") config.variant = "v8";
  if (base != nullptr) take_labels(lock.base.value(), lock.request.base, *base, config);
  config.labels["org.opencontainers.image.title"] = lock.settings.name;
  config.labels["dev.mlenv.lock"] = lock_digest(lock).str();
  config.labels["dev.mlenv.layer-format"] = std::to_string(kLayerFormat);
  if (files) config.labels["dev.mlenv.files"] = files->str();
  if (lock.cuda) add_cuda(lock, env, config);
  for (const auto& [name, value] : lock.settings.env) env[name] = value;
  for (const auto& [name, value] : env) config.env.push_back(fmt::format("{}={}", name, value));
  take_command(lock, base, config);
  return config;
}

}  // namespace mlenv
