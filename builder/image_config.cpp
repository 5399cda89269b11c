#include "builder/image_config.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "builder/plan.hpp"
#include "recipes/text.hpp"

namespace mlenv {

namespace {

/// Of locks whose recipe asks for a driver, GPUs or libraries.
void add_demanded(const Lock& lock, std::map<std::string, std::string>& labels,
                  std::map<std::string, std::string>& env) {
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

}  // namespace

ImageConfig image_config(const Lock& lock, const std::optional<Digest>& files) {
  std::map<std::string, std::string> env;
  const std::string system_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  env["PATH"] = lock.python.empty() ? system_path : "/opt/venv/bin:" + system_path;
  env["LANG"] = "C.UTF-8";
  if (!lock.python.empty()) env["VIRTUAL_ENV"] = "/opt/venv";
  ImageConfig config;
  config.architecture = lock.platform.substr(lock.platform.find('/') + 1);
  config.labels["org.opencontainers.image.title"] = lock.settings.name;
  config.labels["dev.mlenv.lock"] = lock_digest(lock).str();
  config.labels["dev.mlenv.layer-format"] = std::to_string(kLayerFormat);
  if (files) config.labels["dev.mlenv.files"] = files->str();
  if (lock.cuda) {
    // nvidia-container-toolkit, "Environment variables (OCI spec)". The driver floor is what minor
    // version compatibility really asks for; the toolkit's own release would ask for too much.
    env["NVIDIA_VISIBLE_DEVICES"] = "all";
    env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility";
    env["NVIDIA_REQUIRE_CUDA"] = "driver>=" + lock.cuda->min_driver;
    config.labels["dev.mlenv.cuda"] = lock.cuda->release;
    config.labels["dev.mlenv.min-driver"] = lock.cuda->min_driver;
    add_demanded(lock, config.labels, env);
  }
  for (const auto& [name, value] : lock.settings.env) env[name] = value;
  for (const auto& [name, value] : env) config.env.push_back(fmt::format("{}={}", name, value));
  config.command = lock.settings.command;
  if (config.command.empty()) config.command = {lock.python.empty() ? "/bin/sh" : "python"};
  config.workdir = lock.settings.workdir;
  return config;
}

}  // namespace mlenv
