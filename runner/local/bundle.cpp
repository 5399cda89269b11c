#include "runner/local/bundle.hpp"

#include <linux/capability.h>
#include <sys/resource.h>
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/confinement.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/engine/keeper/protocol.hpp"
#include "runner/local/machine.hpp"

namespace mlenv {
namespace {

using nlohmann::json;
using SpecWords = std::vector<std::string>;

/// Docker's, but for raw packets on the host's own network: by them a container would read and
/// forge what others of this machine send.
SpecWords capabilities_of(const Bundle& bundle) {
  SpecWords names;
  for (const Capability& one : default_capabilities()) {
    if (one.number != CAP_NET_RAW || !bundle.network_namespace.empty())
      names.emplace_back(one.name);
  }
  return names;
}

json oci_mount(const char* target, const char* type, const char* source, SpecWords options) {
  return {
      {"destination", target}, {"type", type}, {"source", source}, {"options", std::move(options)}};
}

std::string shm_size(const std::optional<std::uint64_t>& bytes) {
  return "size=" + (bytes ? std::to_string(*bytes) : "50%");
}

std::vector<json> default_mounts(bool real_root, const std::optional<std::uint64_t>& shm_bytes) {
  std::vector<json> mounts{
      oci_mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
      oci_mount("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}),
      oci_mount("/dev/shm", "tmpfs", "shm",
                {"nosuid", "noexec", "nodev", "mode=1777", shm_size(shm_bytes)}),
      oci_mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
      oci_mount("/tmp", "tmpfs", "tmpfs", {"nosuid", "nodev", "mode=1777"}),
  };
  SpecWords terminals{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"};
  // Group `tty`, which is an id like another: absent where there is but one.
  if (real_root) terminals.emplace_back("gid=5");
  mounts.push_back(oci_mount("/dev/pts", "devpts", "devpts", std::move(terminals)));
  if (real_root) {
    mounts.push_back(oci_mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}));
    mounts.push_back(
        oci_mount("/sys/fs/cgroup", "cgroup", "cgroup", {"nosuid", "noexec", "nodev", "ro"}));
  } else {
    // A sysfs may be mounted only by the owner of the network namespace, which is the host's.
    mounts.push_back(oci_mount("/sys", "none", "/sys", {"rbind", "rslave", "rro"}));
  }
  return mounts;
}

std::ptrdiff_t target_depth(const std::string& target) {
  return std::count(target.begin(), target.end(), '/');
}

bool is_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_directory(status);
}

json bind(const Mount& from) {
  SpecWords options = from.options;
  if (options.empty()) {
    options = {"rbind", "rprivate"};
    // `rro`: what is mounted below it, too; `ro` would leave that writable. Below a file there is
    // nothing, and crun takes `rro` for folders alone.
    if (from.read_only) options.emplace_back(is_file(from.source) ? "ro" : "rro");
  }
  return oci_mount(from.target.c_str(), "none", from.source.c_str(), std::move(options));
}

/// What is asked for beside the defaults, outer folders first; of two at one target the later one.
std::vector<json> own_mounts(const Bundle& bundle) {
  std::vector<json> own;
  const auto add = [&](json one) {
    std::erase_if(own,
                  [&](const json& other) { return other["destination"] == one["destination"]; });
    own.push_back(std::move(one));
  };
  for (const CdiMount& one : bundle.file_systems) {
    add(oci_mount(one.path.c_str(), one.type.c_str(), one.host_path.c_str(), one.options));
  }
  for (const Mount& one : bundle.mounts) add(bind(one));
  std::stable_sort(own.begin(), own.end(), [](const json& a, const json& b) {
    // The machine's last: by a link of the image another target may lie over it (`/var/run`).
    const auto rank = [](const json& one) {
      return std::pair(one["destination"] == kMachineTarget, target_depth(one["destination"]));
    };
    return rank(a) < rank(b);
  });
  return own;
}

json all_mounts(const Bundle& bundle) {
  std::vector<json> mounts = default_mounts(bundle.identity == Identity::root, bundle.shm_bytes);
  for (json& one : own_mounts(bundle)) {
    std::erase_if(mounts,
                  [&](const json& other) { return other["destination"] == one["destination"]; });
    mounts.push_back(std::move(one));
  }
  return mounts;
}

/// `RLIMIT_NOFILE`
json rlimits(const std::vector<Ulimit>& ulimits) {
  json all = json::array();
  for (const Ulimit& one : ulimits) {
    std::string type = "RLIMIT_";
    for (const char c : one.name) type += static_cast<char>(is_lower(c) ? c - 'a' + 'A' : c);
    constexpr std::uint64_t kUnlimited = RLIM_INFINITY;
    all.push_back({{"type", std::move(type)},
                   {"soft", one.soft.value_or(kUnlimited)},
                   {"hard", one.hard.value_or(kUnlimited)}});
  }
  return all;
}

/// The command, behind the program that enters its folder.
SpecWords entering_words(const Bundle& bundle) {
  SpecWords words{fmt::format("{}/{}", kMachineTarget, kFirstProgram), keeper::kEnter,
                  fmt::format("{}/{}", kMachineTarget, kCallFilter),
                  bundle.make_workdir ? keeper::kMake : keeper::kNeed, bundle.workdir};
  words.insert(words.end(), bundle.argv.begin(), bundle.argv.end());
  return words;
}

json process(const Bundle& bundle) {
  const SpecWords capabilities = capabilities_of(bundle);
  // A user who is not root holds none until they run a program that brings its own.
  const SpecWords held = bundle.user.uid == 0 ? capabilities : SpecWords{};
  // Without the right to read what nobody may read, the kernel lets nobody look into the first
  // program (enter.hpp). That one has it again, as root has after each execve(2).
  SpecWords effective = held;
  std::erase(effective, "CAP_DAC_OVERRIDE");
  json user{{"uid", bundle.user.uid}, {"gid", bundle.user.gid}};
  if (!bundle.user.groups.empty()) user["additionalGids"] = bundle.user.groups;
  json result{{"terminal", bundle.terminal},
              {"user", std::move(user)},
              {"args", entering_words(bundle)},
              {"env", bundle.env},
              {"cwd", "/"},
              {"noNewPrivileges", true},
              {"capabilities",
               {{"bounding", capabilities}, {"effective", effective}, {"permitted", held}}}};
  if (bundle.terminal && bundle.rows > 0) {  // runc copies it from its own terminal, crun does not
    result["consoleSize"] = {{"height", bundle.rows}, {"width", bundle.columns}};
  }
  if (!bundle.apparmor_profile.empty()) result["apparmorProfile"] = bundle.apparmor_profile;
  if (!bundle.ulimits.empty()) result["rlimits"] = rlimits(bundle.ulimits);
  return result;
}

/// The cgroup's rule for a device: what it may be used for.
json device_rule(const CdiNode& node) {
  json rule{{"allow", true},
            {"type", node.type == "u" ? "c" : node.type},
            {"access", node.permissions.empty() ? "rwm" : node.permissions}};
  if (node.major) rule["major"] = *node.major;
  if (node.minor) rule["minor"] = *node.minor;
  return rule;
}

json device_json(const CdiNode& node) {
  json made{{"path", node.path}, {"type", node.type}};
  if (node.major) made["major"] = *node.major;
  if (node.minor) made["minor"] = *node.minor;
  if (node.mode) made["fileMode"] = *node.mode;
  if (node.user) made["uid"] = *node.user;
  if (node.group) made["gid"] = *node.group;
  return made;
}

json hooks(const Bundle& bundle) {
  json all = json::object();
  for (const CdiHook& one : bundle.hooks) {
    json made{{"path", one.path}};
    if (!one.argv.empty()) made["args"] = one.argv;
    if (!one.env.empty()) made["env"] = one.env;
    if (one.timeout_seconds) made["timeout"] = *one.timeout_seconds;
    all[one.when].push_back(std::move(made));
  }
  return all;
}

json linux_part(const Bundle& bundle) {
  json part{
      {"namespaces",
       {{{"type", "mount"}},
        {{"type", "ipc"}},
        {{"type", "uts"}},
        {{"type", "pid"}, {"path", bundle.pid_namespace}}}},
      {"maskedPaths", hidden_paths()},
      {"readonlyPaths", read_only_paths()},
  };
  if (!bundle.network_namespace.empty()) {
    part["namespaces"].push_back({{"type", "network"}, {"path", bundle.network_namespace}});
  }
  if (bundle.identity == Identity::root) {
    // Below our own cgroup, so that limits set on us (Slurm, systemd) hold for the job.
    part["cgroupsPath"] = bundle.group;
    part["resources"] = {{"devices", {{{"allow", false}, {"access", "rwm"}}}}};
    for (const CdiNode& node : bundle.nodes) {
      if (node.type != "p") part["resources"]["devices"].push_back(device_rule(node));
    }
  }
  for (const CdiNode& node : bundle.nodes) part["devices"].push_back(device_json(node));
  return part;
}

std::string dumped(const json& value) {
  try {
    return value.dump();
  } catch (const json::type_error&) {
    throw failure("bad-text", "an argument, variable or path for the container is not UTF-8 text");
  }
}

}  // namespace

std::string render_bundle(const Bundle& bundle) {
  json config{{"ociVersion", "1.0.2"},
              {"root", {{"path", bundle.root.string()}, {"readonly", bundle.read_only}}},
              {"hostname", bundle.hostname},
              {"process", process(bundle)},
              {"mounts", all_mounts(bundle)},
              {"linux", linux_part(bundle)}};
  if (!bundle.hooks.empty()) config["hooks"] = hooks(bundle);
  return dumped(config);
}

std::string render_process(const Bundle& bundle) { return dumped(process(bundle)); }

std::vector<std::string> default_mount_targets() {
  std::vector<std::string> targets;
  for (const json& one : default_mounts(true, {})) targets.push_back(one["destination"]);
  return targets;
}

}  // namespace mlenv
