// What containers on the host are given: GPUs, namespaces, memory, disk, a user.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/text.hpp"
#include "runner/check/rules.hpp"

namespace mlenv {
namespace {

/// Docker's and Kubernetes' /dev/shm, if nobody asks for more.
constexpr std::uint64_t kUsualShm = 64ULL << 20U;
/// The kernel's own, where no systemd raises it; and what shells start with.
constexpr std::uint64_t kFewFiles = 4096;
constexpr std::uint64_t kFewestFiles = 1024;

bool has_engine(const Facts& host, std::string_view name) {
  const auto& engines = host.containers.engines;
  return engines && std::any_of(engines->begin(), engines->end(),
                                [&](const Engine& one) { return one.name == name; });
}

/// Whether a CDI file names NVIDIA's GPUs; a file that cannot be read may.
bool has_cdi(const Facts& host) {
  const auto& files = host.containers.cdi;
  return files && std::any_of(files->begin(), files->end(), [](const CdiFile& one) {
           return !one.kind || one.kind->starts_with("nvidia.com/");
         });
}

/// An engine that has NVIDIA's hook add the devices, unless told of CDI; null: there is none.
const std::string_view* hook_engine(const Facts& host) {
  static constexpr std::array<std::string_view, 3> kEngines = {"docker", "containerd", "nerdctl"};
  const auto* engine = std::find_if(kEngines.begin(), kEngines.end(),
                                    [&](std::string_view name) { return has_engine(host, name); });
  return engine == kEngines.end() ? nullptr : engine;
}

/// Whether an engine is there that is given GPUs by CDI, or by NVIDIA's hook. Apptainer,
/// Singularity and Enroot bring the driver's files in by themselves (`--nv`, a hook of Enroot's
/// own), and runc and crun are what other engines use.
bool has_cdi_engine(const Facts& host) {
  constexpr std::array<std::string_view, 5> kEngines = {"buildah", "containerd", "docker",
                                                        "nerdctl", "podman"};
  return std::any_of(kEngines.begin(), kEngines.end(),
                     [&](std::string_view name) { return has_engine(host, name); });
}

std::string container_sources(const Facts& host) {
  return fmt::format("{}; {}", host.containers.cdi.source, host.containers.engines.source);
}

/// What of the kernel's settings forbids namespaces, and what to do.
struct Forbidden {
  std::string reason;
  std::string source;
  std::string remedy;
};
Forbidden why_forbidden(const Case& here) {
  const IsolationFacts& facts = here.host().isolation;
  if (facts.max_user_namespaces && *facts.max_user_namespaces == 0) {
    return {"user.max_user_namespaces is 0", facts.max_user_namespaces.source,
            "`sysctl -w user.max_user_namespaces=15000`"};
  }
  if (facts.unprivileged_user_namespaces && !*facts.unprivileged_user_namespaces) {
    return {"kernel.unprivileged_userns_clone is 0", facts.unprivileged_user_namespaces.source,
            "`sysctl -w kernel.unprivileged_userns_clone=1`, or run as root"};
  }
  if (here.in_container()) {
    return {"the container that this is forbids them", here.host().system.container.source,
            "start that container with `--security-opt seccomp=unconfined --security-opt "
            "apparmor=unconfined --security-opt systempaths=unconfined`"};
  }
  if (facts.apparmor_restricts_namespaces && *facts.apparmor_restricts_namespaces) {
    return {"AppArmor restricts them (kernel.apparmor_restrict_unprivileged_userns is 1)",
            facts.apparmor_restricts_namespaces.source,
            "install mlenv's AppArmor profile (docs/sandbox.md), or run as root"};
  }
  return {"mlenv's sandbox does not work", facts.sandbox.source,
          "see docs/sandbox.md; `mlenv build` names the step that the kernel refuses"};
}

/// The user id that it runs as; nothing for a name.
std::optional<std::string> user_id_of(const Case& here) {
  std::string user = here.use().user;
  if (user.empty()) user = here.image().user.value.value_or("");
  const Number& own = here.host().system.user_id;
  // Elsewhere `mlenv run` shows whoever runs it as root.
  if (user.empty() && here.in_container() && own) user = std::to_string(*own);
  user = user.substr(0, user.find(':'));
  if (user.empty()) user = "0";
  return all_digits(user) ? std::optional(user) : std::nullopt;
}

}  // namespace

void cdi_missing(Case& here) {
  constexpr const char* kRule = "cdi-missing";
  const Facts& host = here.host();
  if (here.in_container() || here.has_gpu().value != true || !here.on_gpus(kRule)) return;
  if (!here.knows(kRule, "host containers.engines", host.containers.engines)) return;
  if (!has_cdi_engine(host)) return;
  if (!here.knows(kRule, "host containers.cdi", host.containers.cdi)) return;
  const bool by_hook = has_engine(host, "nvidia-ctk") && hook_engine(host) != nullptr;
  if (has_cdi(host) || by_hook) return;
  here.find(kRule, {"a CDI file for nvidia.com/gpu, by which containers are given GPUs", "none",
                    container_sources(host),
                    "install nvidia-container-toolkit and run `nvidia-ctk cdi generate "
                    "--output=/etc/cdi/nvidia.yaml`"});
}

void gpus_after_daemon_reload(Case& here) {
  constexpr const char* kRule = "gpus-after-daemon-reload";
  const Facts& host = here.host();
  if (here.in_container() || here.has_gpu().value != true || !here.on_gpus(kRule)) return;
  const std::string_view* engine = hook_engine(host);
  // Engines let systemd keep their groups where there is v2 alone.
  const Text& groups = host.isolation.cgroup_version;
  const bool by_systemd = groups && *groups == "v2";
  if (engine == nullptr || !by_systemd || !host.containers.cdi || has_cdi(host)) return;
  if (!has_engine(host, "nvidia-ctk")) return;  // rule cdi-missing
  here.find(kRule,
            {"GPUs given to containers by CDI, which systemd knows of",
             fmt::format("{} with systemd's cgroups, and no CDI file: a hook adds the devices "
                         "behind systemd's back",
                         *engine),
             container_sources(host) + "; " + groups.source,
             "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, and start containers with "
             "`--device nvidia.com/gpu=all`; else each `systemctl daemon-reload` takes their GPUs "
             "away"});
}

void namespaces_forbidden(Case& here) {
  constexpr const char* kRule = "namespaces-forbidden";
  const Truth& sandbox = here.host().isolation.sandbox;
  if (!here.knows(kRule, "host isolation.sandbox", sandbox) || *sandbox) return;
  Forbidden why = why_forbidden(here);
  here.find(kRule, {"user and mount namespaces, which `mlenv run` makes", std::move(why.reason),
                    std::move(why.source), std::move(why.remedy)});
}

void shared_memory_small(Case& here) {
  constexpr const char* kRule = "shared-memory-small";
  const Number& size = here.host().storage.shared_memory.size_bytes;
  const auto asked = here.use().shm_bytes;
  if (!asked && !here.knows(kRule, "host storage.shared_memory.size_bytes", size)) return;
  const std::uint64_t bytes = asked ? *asked : *size;
  if (bytes > kUsualShm) return;
  here.find(kRule, {"more than 64 MiB in /dev/shm, through which data loaders hand over batches",
                    size_text(bytes), asked ? "as asked for" : size.source,
                    "start the container with `--shm-size=8g` or `--ipc=host`; else workers end "
                    "with a bus error"});
}

void open_files_low(Case& here) {
  constexpr const char* kRule = "open-files-low";
  const LimitFacts& limits = here.host().limits;
  if (!here.knows(kRule, "host limits.open_files_soft", limits.open_files_soft)) return;
  const auto& soft = limits.open_files_soft->most;
  const Limit hard = limits.open_files_hard.value.value_or(Limit{});
  const bool is_low = soft && (*soft < kFewestFiles || (hard.most && *hard.most <= kFewFiles));
  if (!is_low) return;
  here.find(kRule,
            {"limits of 1024 open files and more, with room above",
             fmt::format("{}{}", *soft, hard.most ? fmt::format(", at most {}", *hard.most) : ""),
             limits.open_files_soft.source,
             "`ulimit -n 65536`, or LimitNOFILE= of the service that starts it; data "
             "loaders fail with \"Too many open files\""});
}

void user_without_name(Case& here) {
  constexpr const char* kRule = "user-without-name";
  const auto id = user_id_of(here);
  const auto& names = here.image().user_ids;
  if (!id || (!names && *id == "0")) return;
  if (!here.knows(kRule, "image user_ids", names)) return;
  // Without any names it is made of programs that ask for none, and root needs no home's owner.
  if (names->empty() && *id == "0") return;
  if (std::find(names->begin(), names->end(), *id) != names->end()) return;
  here.find(kRule, {"an entry in /etc/passwd for user id " + *id, "none in the image", names.source,
                    "`-e USER=me -e HOME=/tmp -e TORCHINDUCTOR_CACHE_DIR=/tmp/inductor`, or add "
                    "the user to the image; programs that ask for their name end with "
                    "\"getpwuid(): uid not found\""});
}

void disk_space(Case& here) {
  constexpr const char* kRule = "disk-space";
  const auto& unpacked = here.image().unpacked_bytes;
  const auto& packed = here.image().packed_bytes;
  const auto left = here.use().bytes_to_store;
  const DiskFacts& disk = here.host().storage.store;
  if (!unpacked && !left) return;  // known after the build
  // The store keeps what was pulled beside what is unpacked of it.
  const std::uint64_t size = left ? *left : *unpacked + packed.value.value_or(0);
  if (size == 0) return;
  if (!here.knows(kRule, "host storage.store.free_bytes", disk.free_bytes)) return;
  if (*disk.free_bytes >= size) return;
  here.find(kRule, {size_text(size) + (packed && !left ? " to pull and unpack the image"
                                                       : " to unpack the image"),
                    fmt::format("{} free{}", size_text(*disk.free_bytes),
                                disk.mount_point ? " on " + *disk.mount_point : ""),
                    fmt::format("{}; {}", unpacked.source, disk.free_bytes.source),
                    "free space there, or set MLENV_STORE to a folder on another disk"});
}

}  // namespace mlenv
