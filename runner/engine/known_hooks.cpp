#include "runner/engine/known_hooks.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/files.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// `nvidia-cdi-hook NAME OPTION…`, or `nvidia-ctk hook NAME OPTION…` of earlier releases.
struct ToolkitHook {
  std::string name;
  std::vector<std::string> options;
};

std::optional<ToolkitHook> toolkit_hook(const CdiHook& hook) {
  const std::string program = fs::path(hook.path).filename().string();
  std::size_t first = 1;
  if (program == "nvidia-ctk") {
    if (hook.argv.size() <= first || hook.argv[first] != "hook") return std::nullopt;
    ++first;
  } else if (program != "nvidia-cdi-hook") {
    return std::nullopt;
  }
  if (hook.argv.size() <= first) return std::nullopt;
  const auto rest = hook.argv.begin() + static_cast<std::ptrdiff_t>(first);
  return ToolkitHook{*rest, {rest + 1, hook.argv.end()}};
}

/// Of `--NAME VALUE` and `--NAME=VALUE`, in order.
std::vector<std::string> option_values(const ToolkitHook& hook, std::string_view name) {
  const std::string word = "--" + std::string(name);
  std::vector<std::string> values;
  for (std::size_t i = 0; i < hook.options.size(); ++i) {
    const std::string& one = hook.options[i];
    if (one == word && i + 1 < hook.options.size()) values.push_back(hook.options[++i]);
    if (one.starts_with(word + "=")) values.push_back(one.substr(word.size() + 1));
  }
  return values;
}

bool add_links(const ToolkitHook& hook, HookWork& work) {
  constexpr std::string_view kBetween = "::";
  for (const std::string& value : option_values(hook, "link")) {
    const std::size_t at = value.find(kBetween);
    if (at == value.npos) return false;
    const std::string path = value.substr(at + kBetween.size());
    if (path.empty() || path.front() != '/') return false;
    work.links.push_back({path, value.substr(0, at)});
  }
  return true;
}

bool add_modes(const ToolkitHook& hook, HookWork& work) {
  constexpr int kOctal = 8;
  constexpr std::uint32_t kMost = 07777;
  const std::vector<std::string> modes = option_values(hook, "mode");
  if (modes.size() != 1) return false;
  const std::string& text = modes.front();
  std::uint32_t mode = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, mode, kOctal);
  if (error != std::errc{} || rest != end || mode > kMost) return false;
  for (std::string& path : option_values(hook, "path")) {
    work.modes.push_back({std::move(path), mode});
  }
  return true;
}

bool add_hook(const CdiHook& hook, HookWork& work) {
  const std::optional<ToolkitHook> known = toolkit_hook(hook);
  if (!known) return false;
  if (known->name == "create-symlinks") return add_links(*known, work);
  if (known->name == "chmod") return add_modes(*known, work);
  if (known->name == "update-ldcache") {
    for (std::string& one : option_values(*known, "folder")) {
      work.library_folders.push_back(std::move(one));
    }
    return true;
  }
  if (known->name == "update-application-profile") return work.shows_gpus = true;
  if (known->name == "apply-cuda-memory-limits") return work.limits_memory = true;
  // Libraries of forward compatibility are the verdict's to allow (LocalRun::first_libraries).
  if (known->name == "enable-cuda-compat") return true;
  // It keeps the driver from making device files, which nobody may in here.
  return known->name == "disable-device-node-modification";
}

}  // namespace

HookWork work_of_hooks(const std::vector<CdiHook>& hooks) {
  HookWork work;
  for (const CdiHook& hook : hooks) {
    if (add_hook(hook, work)) continue;
    const std::string words = hook.argv.empty() ? hook.path : join(hook.argv, " ");
    throw failure("no-device", "docker cannot give a container this device")
        .because(fmt::format("its CDI specification has the hook `{}` (`{}`), a program of this "
                             "machine that only the OCI runtime itself can start",
                             hook.path, words))
        .hint("leave `--runtime docker` out, or use `--runtime podman`");
  }
  return work;
}

}  // namespace mlenv
