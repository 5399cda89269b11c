#include "runner/engine/engine_command.hpp"

#include <linux/capability.h>
#include <sys/resource.h>
#include <algorithm>
#include <array>
#include <map>

#include <nlohmann/json.hpp>

#include "base/confinement.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "recipes/text.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/seccomp.hpp"
#include "runner/runtime_variables.hpp"

namespace mlenv {
namespace {

using EngineWords = std::vector<std::string>;

constexpr const char* kTmp = "/tmp";
constexpr const char* kShm = "/dev/shm";

void add_words(EngineWords& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

/// A value in a line of comma-separated ones (RFC 4180), as Docker reads them.
std::string csv_quoted(const std::string& value) {
  if (value.find_first_of(",\"\n") == std::string::npos) return value;
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + "\"";
}

EngineWords mount_words(const ContainerEngine& engine, const Mount& mount) {
  const std::string source = mount.source.string();
  const bool has_comma = (source + mount.target).find_first_of(",\"\n") != std::string::npos;
  const bool has_colon = (source + mount.target).find(':') != std::string::npos;
  // Docker's reader of such lines takes `\r\n` for `\n`: another folder's name.
  if (!engine.is_podman() && (source + '\0' + mount.target).find("\r\n") != std::string::npos) {
    throw usage_error("bad-mount", "docker cannot mount `{}` at `{}`", source, mount.target)
        .because("a carriage return before a line's end gets lost on the way to it")
        .hint("rename it, or leave `--runtime docker` out");
  }
  if (engine.is_podman() && has_comma) {
    if (has_colon) {
      throw usage_error("bad-mount", "podman cannot mount `{}`", source)
          .because("its path has a comma and a colon");
    }
    return {"--volume", fmt::format("{}:{}:rbind,rprivate{}", source, mount.target,
                                    mount.read_only ? ",ro" : "")};
  }
  return {"--mount", "type=bind," + csv_quoted("source=" + source) + ',' +
                         csv_quoted("target=" + mount.target) + ",bind-propagation=rprivate" +
                         (mount.read_only ? ",readonly" : "")};
}

/// An overlay that the engine itself mounts.
EngineWords layer_words(const ContainerEngine& engine, const ThrowawayLayer& layer,
                        const std::string& target) {
  const std::string source = layer.source.string();
  const std::string upper = layer.upper.string();
  const std::string work = layer.work.string();
  if ((source + upper + work + target).find_first_of(",:\"\\\n\r") != std::string::npos) {
    throw failure("no-overlay", "{} cannot put a throwaway layer over `{}`", engine.name, source)
        .because(
            "the paths of its layers must be without commas, colons, quotes, backslashes and line "
            "ends")
        .hint("`--runtime builtin`");
  }
  if (engine.is_podman()) {
    return {"--volume", fmt::format("{}:{}:O,upperdir={},workdir={}", source, target, upper, work)};
  }
  return {"--mount",
          fmt::format("type=volume,target={},volume-driver=local,volume-opt=type=overlay,"
                      "volume-opt=device=overlay,"
                      "\"volume-opt=o=lowerdir={},upperdir={},workdir={}\"",
                      target, source, upper, work)};
}

std::string memory_word(const ContainerEngine& engine, const MemoryFolder& folder) {
  EngineWords options = folder.options;
  // Both would add `noexec` and copy what the image has there.
  const auto has = [&](std::string_view word) {
    return std::find(options.begin(), options.end(), word) != options.end();
  };
  if (!has("noexec")) options.emplace_back("exec");
  if (engine.is_podman()) options.emplace_back("notmpcopyup");
  return folder.target + ":" + join(options, ",");
}

/// One thing at each target, outer ones first.
void add_mounts(const ContainerEngine& engine, const EngineContainer& container,
                EngineWords& words) {
  std::map<std::string, EngineWords> at;
  const MemoryFolder tmp{kTmp, {"nosuid", "nodev", "mode=1777"}};
  at[kTmp] = {"--tmpfs", memory_word(engine, tmp)};
  for (const MemoryFolder& one : container.memory) {
    at[one.target] = {"--tmpfs", memory_word(engine, one)};
  }
  if (container.home)
    at[*container.home] = {"--mount", "type=volume," + csv_quoted("target=" + *container.home)};
  for (const Mount& one : container.mounts) {
    const auto layer = container.layers.find(one.target);
    at[one.target] = layer == container.layers.end()
                         ? mount_words(engine, one)
                         : layer_words(engine, layer->second, one.target);
  }
  at[std::string(kMachineTarget)] =
      mount_words(engine, {container.folder, std::string(kMachineTarget), true});
  for (const auto& [target, some] : at) words.insert(words.end(), some.begin(), some.end());
}

void add_limits(const ContainerEngine& engine, const JobLimits& limits, EngineWords& words) {
  if (limits.memory_bytes) {
    add_words(words, {"--memory", std::to_string(*limits.memory_bytes)});
    const std::string both =
        limits.unlimited_swap
            ? "-1"
            : std::to_string(limits.memory_swap_bytes.value_or(*limits.memory_bytes * 2));
    if (engine.swap_limit) add_words(words, {"--memory-swap", both});
  }
  if (limits.cpus) add_words(words, {"--cpus", fmt::format("{}", *limits.cpus)});
  if (limits.cpuset) add_words(words, {"--cpuset-cpus", *limits.cpuset});
  if (limits.pids) {
    add_words(words, {"--pids-limit", std::to_string(*limits.pids)});
  } else if (!engine.controllers.empty()) {
    add_words(words, {"--pids-limit", "-1"});  // podman has one of its own accord
  }
}

/// On no container of anybody else's: the name is random, and whoever else took it has other
/// labels.
std::string label_of(const EngineContainer& container) { return "dev.mlenv.run=" + container.name; }

/// What podman takes for a network of its own as an ordinary user was slirp4netns up to version 4.
std::string private_network(const ContainerEngine& engine) {
  if (!engine.is_podman() || !engine.rootless) return "bridge";
  const bool is_old =
      engine.version.size() > 1 && engine.version[1] == '.' && engine.version[0] < '5';
  return is_old ? "slirp4netns" : "pasta";
}

void add_network(const ContainerEngine& engine, const JobOptions& options, EngineWords& words) {
  add_words(words, {"--network",
                    options.network == "private" ? private_network(engine) : options.network});
  for (const PublishedPort& port : options.ports) {
    add_words(words, {"--publish", fmt::format("{}:{}:{}/{}", port.address, port.host,
                                               port.container, port.protocol)});
  }
}

/// What the built-in runtime gives, whatever the engine's own default is.
void add_capabilities(const JobOptions& options, EngineWords& words) {
  constexpr std::string_view kPrefix = "CAP_";
  for (const Capability& one : default_capabilities()) {
    if (one.number == CAP_NET_RAW && options.network == "host") continue;
    add_words(words, {"--cap-add", std::string(one.name.substr(kPrefix.size()))});
  }
}

void add_rights(const ContainerEngine& engine, const EngineContainer& container,
                EngineWords& words) {
  add_words(words, {"--user", "0:0", "--userns", "host", "--ipc", "private", "--cap-drop", "all"});
  add_capabilities(container.options, words);
  add_words(words, {"--security-opt", "no-new-privileges", "--security-opt", "label=disable",
                    "--security-opt", "seccomp=" + (container.settings / "seccomp.json").string()});
  if (engine.keeps_groups && engine.rootless) add_words(words, {"--group-add", "keep-groups"});
}

void add_device_nodes(const EngineContainer& container, EngineWords& words) {
  for (const CdiNode& node : container.nodes) {
    add_words(words,
              {"--device", fmt::format("{}:{}:{}", node.on_host(), node.path,
                                       node.permissions.empty() ? "rwm" : node.permissions)});
  }
}

std::string limit_text(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "-1";
}

void add_ulimits(const EngineContainer& container, EngineWords& words) {
  for (const Ulimit& one : container.ulimits) {
    add_words(words, {"--ulimit", fmt::format("{}={}:{}", one.name, limit_text(one.soft),
                                              limit_text(one.hard))});
  }
}

}  // namespace

Command run_command(const ContainerEngine& engine, const EngineContainer& container) {
  Command command{Purpose{"engine-run"}};
  command.env = runtime_variables(Starts::engine);
  EngineWords& words = command.argv;
  words = {engine.program};
  if (!engine.oci_runtime.empty()) add_words(words, {"--runtime", engine.oci_runtime});
  if (engine.is_podman() && container.has_hooks) {
    add_words(words, {"--hooks-dir", (container.settings / "hooks").string()});
  }
  add_words(words, {"run", "--rm", "--pull", "never", "--name", container.name, "--sig-proxy=false",
                    "--log-driver", "none", "--init=false", "--no-healthcheck", "--hostname",
                    container.hostname, "--workdir", "/", "--shm-size",
                    std::to_string(container.shm_bytes) + "b", "--entrypoint",
                    fmt::format("{}/{}", kMachineTarget, kKeeperName)});
  if (engine.is_podman()) {
    add_words(words, {"--pid", "private", "--uts", "private", "--systemd", "false",
                      "--image-volume", "ignore", "--http-proxy=false", "--passwd=false"});
  }
  add_words(words, {"--label", label_of(container)});
  if (container.options.read_only) {
    words.emplace_back("--read-only");
    if (engine.is_podman()) words.emplace_back("--read-only-tmpfs=false");
  }
  add_rights(engine, container, words);
  add_network(engine, container.options, words);
  add_limits(engine, container.options.limits, words);
  add_ulimits(container, words);
  add_device_nodes(container, words);
  add_mounts(engine, container, words);
  add_words(words, {engine.image, fmt::format("{}/{}", kMachineTarget, kKeeperSocket)});
  return command;
}

std::vector<std::string> own_containers_words(const EngineContainer& container) {
  return {"ps", "--all", "--quiet", "--no-trunc", "--filter", "label=" + label_of(container)};
}

std::vector<std::string> remove_words(const std::string& id) {
  return {"rm", "--force", "--volumes", id};
}

std::vector<std::string> memory_targets(const EngineContainer& container) {
  std::vector<std::string> targets{kTmp, kShm, "/dev/mqueue"};
  for (const MemoryFolder& one : container.memory) targets.push_back(one.target);
  std::erase_if(targets, [&](const std::string& target) {
    return std::any_of(container.mounts.begin(), container.mounts.end(),
                       [&](const Mount& mount) { return mount.target == target; });
  });
  return targets;
}

std::vector<Mount> with_mounts_below(std::vector<Mount> mounts,
                                     const std::vector<std::string>& mounted) {
  const std::vector<Mount> asked = mounts;
  for (const Mount& mount : asked) {
    if (!mount.read_only) continue;
    std::error_code error;
    const fs::path real = fs::canonical(mount.source, error);
    const fs::path& source = error ? mount.source : real;  // mountinfo has no links
    for (const std::string& folder : mounted) {
      if (folder == source || !is_beneath(folder, source.string())) continue;
      const fs::path below = fs::path(folder).lexically_relative(source);
      const std::string target = (fs::path(mount.target) / below).string();
      const bool is_own = std::any_of(asked.begin(), asked.end(), [&](const Mount& other) {
        return other.target == target ||
               (is_beneath(target, other.target) && other.target.size() > mount.target.size());
      });
      if (!is_own) mounts.push_back({folder, target, true});
    }
  }
  return mounts;
}

std::vector<std::string> mounted_folders(std::string_view mountinfo) {
  constexpr std::size_t kTarget = 4;  // proc_pid_mountinfo(5)
  std::vector<std::string> folders;
  for (const std::string_view line : split(mountinfo, '\n')) {
    const std::vector<std::string_view> fields = split(line, ' ');
    if (fields.size() <= kTarget) continue;
    std::string folder;
    for (std::size_t i = 0; i < fields[kTarget].size(); ++i) {
      const std::string_view rest = fields[kTarget].substr(i);
      constexpr std::size_t kEscape = 4;  // `\040`
      if (rest.front() == '\\' && rest.size() >= kEscape) {
        folder += static_cast<char>((rest[1] - '0') * 64 + (rest[2] - '0') * 8 + (rest[3] - '0'));
        i += kEscape - 1;
      } else {
        folder += rest.front();
      }
    }
    folders.push_back(std::move(folder));
  }
  return folders;
}

std::vector<Ulimit> with_own_limits(const ContainerEngine& engine, const std::vector<Ulimit>& own,
                                    bool may_raise) {
  constexpr rlim_t kMostProcesses = 32768;
  constexpr std::array<std::pair<const char*, int>, 15> kKnown{{{"core", RLIMIT_CORE},
                                                                {"cpu", RLIMIT_CPU},
                                                                {"data", RLIMIT_DATA},
                                                                {"fsize", RLIMIT_FSIZE},
                                                                {"locks", RLIMIT_LOCKS},
                                                                {"memlock", RLIMIT_MEMLOCK},
                                                                {"msgqueue", RLIMIT_MSGQUEUE},
                                                                {"nice", RLIMIT_NICE},
                                                                {"nofile", RLIMIT_NOFILE},
                                                                {"nproc", RLIMIT_NPROC},
                                                                {"rss", RLIMIT_RSS},
                                                                {"rtprio", RLIMIT_RTPRIO},
                                                                {"rttime", RLIMIT_RTTIME},
                                                                {"sigpending", RLIMIT_SIGPENDING},
                                                                {"stack", RLIMIT_STACK}}};
  std::vector<Ulimit> all = own;
  const auto value = [](rlim_t number) {
    return number == RLIM_INFINITY ? std::nullopt : std::optional<std::uint64_t>(number);
  };
  for (const auto& known : kKnown) {
    const bool is_own = std::any_of(own.begin(), own.end(),
                                    [&](const Ulimit& one) { return one.name == known.first; });
    rlimit limit{};
    if (is_own || ::getrlimit(static_cast<__rlimit_resource>(known.second), &limit) != 0) continue;
    if (known.second == RLIMIT_NPROC && engine.is_podman() && !may_raise) {
      limit.rlim_cur = std::min(limit.rlim_cur, kMostProcesses);
      limit.rlim_max = std::min(limit.rlim_max, kMostProcesses);
    }
    all.push_back({known.first, value(limit.rlim_cur), value(limit.rlim_max)});
  }
  return all;
}

std::string seccomp_text(std::string_view architecture, bool pretend_owners) {
  return seccomp_profile(architecture, pretend_owners).dump();
}

std::string render_hook(const CdiHook& hook) {
  nlohmann::json program{{"path", hook.path}};
  if (!hook.argv.empty()) program["args"] = hook.argv;
  if (!hook.env.empty()) program["env"] = hook.env;
  if (hook.timeout_seconds) program["timeout"] = *hook.timeout_seconds;
  return nlohmann::json{{"version", "1.0.0"},
                        {"hook", std::move(program)},
                        {"when", {{"always", true}}},
                        {"stages", {hook.when}}}
      .dump();
}

}  // namespace mlenv
