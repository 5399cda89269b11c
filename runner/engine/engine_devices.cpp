#include "runner/engine/engine_devices.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "base/log.hpp"

namespace mlenv {
namespace {

constexpr const char* kLinkerList = "/etc/ld.so.conf.d/00-mlenv.conf";  // before the image's own

Error cannot_give(std::string why) {
  return failure("no-device", "docker cannot give this image the device")
      .because(std::move(why))
      .hint("leave `--runtime docker` out, or use `--runtime podman`");
}

/// Waits for what runs in the keeper; false: it is not to be waited for any longer.
bool ended_in_time(const Keeper& keeper, const HookTerms& terms) {
  constexpr int kLongest = 60'000;
  std::array<pollfd, 3> fds{
      {{keeper.fd(), POLLIN, 0}, {terms.socket, 0, 0}, {terms.signals, POLLIN, 0}}};
  while (::poll(fds.data(), fds.size(), kLongest) < 0) {
    if (errno != EINTR) throw os_error(errno, "cannot wait for `ldconfig`");
  }
  if (fds[1].revents != 0) throw failure("run-failed", "mlenv was killed");
  return fds[0].revents != 0;
}

/// As root of the container; whether it succeeded.
bool run_program(Keeper& keeper, std::string program, const HookTerms& terms) {
  const Fd null = open_file("/dev/null", O_RDWR);
  KeptProcess process;
  process.workdir = "/";
  process.argv = {std::move(program)};
  process.streams = {null.get(), null.get(), null.get()};
  keeper::Failed problem;
  if (!keeper.start(process, problem)) return false;
  const bool in_time = ended_in_time(keeper, terms);
  if (!in_time) keeper.signal(SIGKILL);
  const std::optional<Keeper::End> end = keeper.ended();
  return in_time && end && end->exit.code == 0;
}

bool make_linker_cache(const std::vector<std::string>& folders, Keeper& keeper,
                       const ImageRoot& image, const HookTerms& terms) {
  std::string list;
  for (const std::string& folder : folders) list += folder + "\n";
  for (const char* program : {"/sbin/ldconfig", "/usr/sbin/ldconfig"}) {
    if (image.program(program) != ImageRoot::Program::found) continue;
    image.write(kLinkerList, list);
    if (run_program(keeper, program, terms)) return true;
    log::debug("`{}` of the image fails", program);
  }
  return false;
}

/// `/dev/nvidia3`, but not `/dev/nvidiactl`.
bool is_gpu(std::string_view node) {
  constexpr std::string_view kBefore = "/dev/nvidia";
  if (!node.starts_with(kBefore) || node.size() == kBefore.size()) return false;
  node.remove_prefix(kBefore.size());
  return std::all_of(node.begin(), node.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void write_profile(const ImageRoot& image, const std::vector<std::string>& nodes) {
  constexpr const char* kPlace = "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf";
  constexpr mode_t kMode = 0444;
  std::vector<unsigned> minors;
  for (const std::string& node : nodes) {
    const std::optional<struct stat> status = is_gpu(node) ? image.status(node) : std::nullopt;
    if (status && S_ISCHR(status->st_mode)) minors.push_back(minor(status->st_rdev));
  }
  if (const std::string text = application_profile(minors); !text.empty()) {
    image.write(kPlace, text, kMode);
  }
}

}  // namespace

std::vector<std::string> do_work_of_hooks(const HookWork& work, Keeper& keeper,
                                          const ImageRoot& image, const HookTerms& terms) {
  const auto is_of_image = [](const HookWork::Mode& one) { return !one.path.starts_with("/dev/"); };
  if (terms.fixed &&
      (!work.links.empty() || std::any_of(work.modes.begin(), work.modes.end(), is_of_image))) {
    throw cannot_give("it needs links or modes in the image, which `--read-only` keeps as it is");
  }
  for (const HookWork::Link& one : work.links) keeper.make_link(one.path, one.leads_to);
  for (const HookWork::Mode& one : work.modes) {
    if (image.exists(one.path)) keeper.set_mode(one.path, one.mode);
  }
  // In an image that cannot be written the hook leaves it out, too.
  if (work.shows_gpus && !terms.fixed) write_profile(image, terms.nodes);
  if (work.library_folders.empty()) return {};
  const bool may_make = terms.as_root && !terms.fixed;
  if (may_make && make_linker_cache(work.library_folders, keeper, image, terms)) return {};
  return work.library_folders;
}

void require_no_memory_limits(const HookWork& work, const std::vector<std::string>& environment) {
  if (!work.limits_memory) return;
  for (const std::string_view name : {"NVIDIA_GPU_MEMORY_REQUEST=", "NVIDIA_GPU_MEMORY_LIMIT="}) {
    const auto asks = [&](const std::string& one) { return one.starts_with(name); };
    if (std::none_of(environment.begin(), environment.end(), asks)) continue;
    throw cannot_give(fmt::format("`{}` limits its memory, which only NVIDIA's own hook can do",
                                  name.substr(0, name.size() - 1)));
  }
}

std::string application_profile(const std::vector<unsigned>& minors) {
  constexpr unsigned kBits = 64;
  std::uint64_t mask = 0;
  for (const unsigned one : minors) {
    if (one < kBits) mask |= std::uint64_t{1} << one;
  }
  if (mask == 0) return {};
  return fmt::format(R"({{"profiles":[{{"name":"_container_",)"
                     R"("settings":["EGLVisibleDGPUDevices",0x{:x}]}}],)"
                     R"("rules":[{{"pattern":[],"profile":"_container_"}}]}})",
                     mask);
}

}  // namespace mlenv
