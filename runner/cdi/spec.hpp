#pragma once
// A specification file of the Container Device Interface (CDI, versions 0.3 to 1.0): what a
// container gets for a device that is named `VENDOR/CLASS=NAME`. Pure: text in, values out.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// A device file.
struct CdiNode {
  std::string path;       ///< in the container
  std::string host_path;  ///< on the host, where it is another
  std::string type;       ///< `b`, `c`, `u` or `p`; empty: as the host's file
  std::optional<std::uint64_t> major;
  std::optional<std::uint64_t> minor;
  std::optional<std::uint64_t> mode;
  std::string permissions;  ///< what the cgroup allows, of `rwm`; empty: all
  std::optional<std::uint64_t> user;
  std::optional<std::uint64_t> group;
  const std::string& on_host() const { return host_path.empty() ? path : host_path; }
  friend bool operator==(const CdiNode&, const CdiNode&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("host_path", self.host_path);
    visit("type", self.type);
    visit("major", self.major);
    visit("minor", self.minor);
    visit("mode", self.mode);
    visit("permissions", self.permissions);
    visit("user", self.user);
    visit("group", self.group);
  }
};

struct CdiMount {
  std::string host_path;
  std::string path;
  std::string type;                  ///< empty: a bind mount
  std::vector<std::string> options;  ///< of mount(8)
  bool is_bind() const { return type.empty() || type == "bind" || type == "none"; }
  friend bool operator==(const CdiMount&, const CdiMount&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("host_path", self.host_path);
    visit("path", self.path);
    visit("type", self.type);
    visit("options", self.options);
  }
};

/// A program of the host that the OCI runtime starts with the container.
struct CdiHook {
  std::string
      when;  ///< `createContainer` and its kin (runtime-spec config.md "POSIX-platform Hooks")
  std::string path;
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::optional<std::uint64_t> timeout_seconds;
  friend bool operator==(const CdiHook&, const CdiHook&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("when", self.when);
    visit("path", self.path);
    visit("argv", self.argv);
    visit("env", self.env);
    visit("timeout_seconds", self.timeout_seconds);
  }
};

/// What is added to a container.
struct CdiEdits {
  std::vector<std::string> env;  ///< `K=V`, over what the container has
  std::vector<CdiNode> nodes;
  std::vector<CdiMount> mounts;
  std::vector<CdiHook> hooks;
  std::vector<std::uint64_t> groups;         ///< supplementary
  std::vector<std::string> library_folders;  ///< not CDI's: behind what LD_LIBRARY_PATH holds
  void append(const CdiEdits& other);
  friend bool operator==(const CdiEdits&, const CdiEdits&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("env", self.env);
    visit("nodes", self.nodes);
    visit("mounts", self.mounts);
    visit("hooks", self.hooks);
    visit("groups", self.groups);
    visit("library_folders", self.library_folders);
  }
};

struct CdiDevice {
  std::string name;
  CdiEdits edits;
};

struct CdiSpec {
  std::string shown;  ///< its file, or who made it
  std::string kind;   ///< `nvidia.com/gpu`
  std::vector<CdiDevice> devices;
  CdiEdits edits;  ///< that all of its devices need

  /// nullptr: it has none of that name.
  const CdiDevice* find(std::string_view name) const;
};

/// YAML or JSON. Throws `bad-cdi` (usage) with every mistake at its place: of syntax, of a member's
/// kind, a member that CDI does not have or that mlenv cannot apply (`intelRdt`), a version that it
/// does not read.
CdiSpec parse_cdi_spec(std::string_view text, std::string_view shown);

/// `VENDOR/CLASS=NAME`, taken apart; nullopt for what is no such name.
struct CdiName {
  std::string kind;
  std::string device;
};
std::optional<CdiName> parse_cdi_name(std::string_view text);

}  // namespace mlenv
