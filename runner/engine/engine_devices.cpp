#include "runner/engine/engine_devices.hpp"

#include <fcntl.h>
#include <poll.h>
#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace mlenv {
namespace {

constexpr const char* kLinkerList = "/etc/ld.so.conf.d/00-mlenv.conf";  // before the image's own

Error cannot(std::string why) {
  return failure("no-device", "docker cannot give this image the device")
      .because(std::move(why))
      .hint("leave `--runtime docker` out, or use `--runtime podman`");
}

/// As root of the container; whether it succeeded.
bool run_to_end(Keeper& keeper, std::string program) {
  constexpr int kLongest = 60'000;
  const Fd null = open_file("/dev/null", O_RDWR);
  KeptProcess process;
  process.workdir = "/";
  process.argv = {std::move(program)};
  process.streams = {null.get(), null.get(), null.get()};
  keeper::Failed problem;
  if (!keeper.start(process, problem)) return false;
  pollfd ended{keeper.fd(), POLLIN, 0};
  if (::poll(&ended, 1, kLongest) != 1) throw cannot("`ldconfig` does not end");
  const std::optional<Keeper::End> end = keeper.ended();
  return end && end->exit.code == 0;
}

bool make_linker_cache(const std::vector<std::string>& folders, Keeper& keeper,
                       const ImageRoot& image) {
  std::string list;
  for (const std::string& folder : folders) list += folder + "\n";
  for (const char* program : {"/sbin/ldconfig", "/usr/sbin/ldconfig"}) {
    if (image.program(program) != ImageRoot::Program::found) continue;
    image.write(kLinkerList, list);
    if (run_to_end(keeper, program)) return true;
    log::debug("`{}` of the image fails", program);
  }
  return false;
}

}  // namespace

std::vector<std::string> do_work_of_hooks(const HookWork& work, Keeper& keeper,
                                          const ImageRoot& image, bool fixed) {
  if (work.wants_cuda_compat && image.exists("/usr/local/cuda/compat")) {
    throw cannot(
        "the image has CUDA's compatibility libraries, and only NVIDIA's own hook knows "
        "whether they are to be used");
  }
  const auto is_of_image = [](const HookWork::Mode& one) { return !one.path.starts_with("/dev/"); };
  if (fixed &&
      (!work.links.empty() || std::any_of(work.modes.begin(), work.modes.end(), is_of_image))) {
    throw cannot("it needs links or modes in the image, which `--read-only` keeps as it is");
  }
  for (const HookWork::Link& one : work.links) keeper.make_link(one.path, one.leads_to);
  for (const HookWork::Mode& one : work.modes) {
    if (image.exists(one.path)) keeper.set_mode(one.path, one.mode);
  }
  if (work.library_folders.empty()) return {};
  if (!fixed && make_linker_cache(work.library_folders, keeper, image)) return {};
  return work.library_folders;
}

}  // namespace mlenv
